/* outrigger_json.h: JSON: arguments and answers. outrigger.h says what holds everywhere. */
#ifndef OUTRIGGER_JSON_H
#define OUTRIGGER_JSON_H

#include "outrigger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* JSON: arguments and answers -------------------------------------------------------------------------------------- */

/** Appends text as printf makes it. The text of clients belongs into outrigger_print_json_text(), which quotes it. */
OUTRIGGER_PRINTF(2, 3)
static inline void outrigger_print(outrigger_writer_t *writer, const char *format, ...)
{
    va_list arguments;
    int len = 0;
    va_start(arguments, format);
    len = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (len < 0 || !outrigger_reserve(writer, (size_t)len + 1)) {
        writer->failed = true;
        return;
    }
    va_start(arguments, format);
    vsnprintf((char *)writer->bytes + writer->len, (size_t)len + 1, format, arguments);
    va_end(arguments);
    writer->len += (size_t)len;
}

/** Appends bytes as hexadecimal digits. */
static inline void outrigger_print_hex(outrigger_writer_t *writer, outrigger_bytes_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (at = 0; at < bytes.len; at++) {
        outrigger_append(writer, &digits[bytes.ptr[at] >> 4], 1);
        outrigger_append(writer, &digits[bytes.ptr[at] & 15], 1);
    }
}

/** Appends a hash as it is printed: 64 hexadecimal digits, the last byte first. */
static inline void outrigger_print_hash(outrigger_writer_t *writer, const outrigger_hash_t *hash)
{
    uint8_t printed[sizeof hash->bytes];
    outrigger_bytes_t bytes;
    size_t at = 0;
    for (at = 0; at < sizeof printed; at++) {
        printed[at] = hash->bytes[sizeof printed - 1 - at];
    }
    bytes.ptr = printed;
    bytes.len = sizeof printed;
    outrigger_print_hex(writer, bytes);
}

/** Appends UTF-8 as a JSON string, with its quotes. */
static inline void outrigger_print_json_text(outrigger_writer_t *writer, outrigger_bytes_t text)
{
    size_t at = 0;
    outrigger_append(writer, "\"", 1);
    for (at = 0; at < text.len; at++) {
        uint8_t byte = text.ptr[at];
        if (byte < 0x20) {
            outrigger_print(writer, "\\u%04x", (unsigned)byte);
        } else {
            if (byte == '"' || byte == '\\') {
                outrigger_append(writer, "\\", 1);
            }
            outrigger_append(writer, &byte, 1);
        }
    }
    outrigger_append(writer, "\"", 1);
}

/**
 * The length of the JSON value at the beginning of `json`: up to the comma or bracket behind it. `json` is known to be JSON.
 */
static inline size_t outrigger_json_value_len(outrigger_bytes_t json)
{
    size_t at = 0, depth = 0;
    bool quoted = false;
    for (at = 0; at < json.len; at++) {
        uint8_t byte = json.ptr[at];
        if (quoted) {
            if (byte == '\\') {
                at++;
            } else if (byte == '"') {
                quoted = false;
            }
        } else if (byte == '"') {
            quoted = true;
        } else if (byte == '[' || byte == '{') {
            depth++;
        } else if (byte == ']' || byte == '}' || byte == ',') {
            if (depth == 0) {
                return at;
            }
            if (byte != ',') {
                depth--;
            }
        }
    }
    return json.len;
}

/** JSON without the white space around it. */
static inline outrigger_bytes_t outrigger_json_trim(outrigger_bytes_t json)
{
    while (json.len > 0 && strchr(" \t\r\n", json.ptr[0]) != NULL && json.ptr[0] != 0) {
        json.ptr++;
        json.len--;
    }
    while (json.len > 0 && strchr(" \t\r\n", json.ptr[json.len - 1]) != NULL && json.ptr[json.len - 1] != 0) {
        json.len--;
    }
    return json;
}

/** The argument of a call at a position, as JSON; no bytes where it was left out or is null. */
static inline outrigger_bytes_t outrigger_argument(const outrigger_call_t *call, size_t position)
{
    outrigger_bytes_t rest = outrigger_json_trim(call->params);
    outrigger_bytes_t none = { NULL, 0 };
    if (rest.len < 2 || rest.ptr[0] != '[') {
        return none;
    }
    rest.ptr++;
    rest.len -= 2;
    for (;;) {
        size_t len = outrigger_json_value_len(rest);
        if (position == 0) {
            rest.len = len;
            rest = outrigger_json_trim(rest);
            return outrigger_is(rest, "null") ? none : rest;
        }
        if (len >= rest.len) {
            return none;
        }
        rest.ptr += len + 1;
        rest.len -= len + 1;
        position--;
    }
}

/** The length of the JSON string at the beginning of `json`, with its quotes. `json` is known to be JSON. */
static inline size_t outrigger_json_string_len(outrigger_bytes_t json)
{
    size_t at = 1;
    while (at < json.len && json.ptr[at] != '"') {
        at += json.ptr[at] == '\\' ? 2 : 1;
    }
    return at < json.len ? at + 1 : json.len;
}

/**
 * The member of a JSON object that has a name: of the options that `init` is given, above all. No bytes where there is none.
 * `json` is known to be JSON; the name must be one that JSON writes without escapes.
 */
static inline outrigger_bytes_t outrigger_json_member(outrigger_bytes_t json, const char *name)
{
    outrigger_bytes_t rest = outrigger_json_trim(json), none = { NULL, 0 };
    if (rest.len < 2 || rest.ptr[0] != '{') {
        return none;
    }
    rest.ptr++;
    rest.len -= 2;
    for (;;) {
        outrigger_bytes_t member = { rest.ptr, outrigger_json_value_len(rest) };
        size_t step = member.len + 1, key_len = 0;
        member = outrigger_json_trim(member);
        key_len = outrigger_json_string_len(member);
        if (key_len < member.len && key_len == strlen(name) + 2 && memcmp(member.ptr + 1, name, key_len - 2) == 0) {
            member.ptr += key_len;
            member.len -= key_len;
            member = outrigger_json_trim(member);
            if (member.len > 0) {
                member.ptr++;
                member.len--;
            }
            return outrigger_json_trim(member);
        }
        if (step > rest.len) {
            return none;
        }
        rest.ptr += step;
        rest.len -= step;
    }
}

/** A JSON number that is whole and written without fraction or exponent. False for anything else. */
static inline bool outrigger_json_integer(outrigger_bytes_t json, int64_t *out)
{
    bool negative = json.len > 0 && json.ptr[0] == '-';
    uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : (uint64_t)INT64_MAX;
    uint64_t number = 0;
    size_t at = negative ? 1 : 0;
    *out = 0;
    if (at == json.len) {
        return false;
    }
    for (; at < json.len; at++) {
        uint64_t digit = (uint64_t)json.ptr[at] - '0';
        if (digit > 9 || number > (limit - digit) / 10) {
            return false;
        }
        number = number * 10 + digit;
    }
    *out = !negative ? (int64_t)number : number == 0 ? 0 : -(int64_t)(number - 1) - 1;
    return true;
}

/** `true` or `false`. False for anything else. */
static inline bool outrigger_json_bool(outrigger_bytes_t json, bool *out)
{
    *out = outrigger_is(json, "true");
    return *out || outrigger_is(json, "false");
}

/** The value of a hexadecimal digit; 16 for anything else. */
static inline uint8_t outrigger_hex_digit(uint8_t digit)
{
    if (digit >= '0' && digit <= '9') {
        return (uint8_t)(digit - '0');
    }
    if (digit >= 'a' && digit <= 'f') {
        return (uint8_t)(digit - 'a' + 10);
    }
    if (digit >= 'A' && digit <= 'F') {
        return (uint8_t)(digit - 'A' + 10);
    }
    return 16;
}

/** Reads `u` and four hexadecimal digits at the beginning of `escape`. */
static inline bool outrigger_json_unit(outrigger_bytes_t escape, uint32_t *out)
{
    size_t at = 0;
    *out = 0;
    if (escape.len < 5 || escape.ptr[0] != 'u') {
        return false;
    }
    for (at = 1; at < 5; at++) {
        uint8_t digit = outrigger_hex_digit(escape.ptr[at]);
        if (digit == 16) {
            return false;
        }
        *out = *out << 4 | digit;
    }
    return true;
}

/** The character that stands behind a backslash. How many bytes it takes there, or 0 when it is none. */
static inline size_t outrigger_json_escape(outrigger_bytes_t escape, uint32_t *out)
{
    static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    uint32_t low = 0;
    size_t at = 0;
    *out = 0;
    for (at = 0; escape.len > 0 && letters[at] != 0; at++) {
        if (escape.ptr[0] == (uint8_t)letters[at]) {
            *out = (uint8_t)meanings[at];
            return 1;
        }
    }
    if (!outrigger_json_unit(escape, out)) {
        return 0;
    }
    if (*out < 0xd800 || *out >= 0xe000) {
        return 5;
    }
    if (*out >= 0xdc00 || escape.len < 11 || escape.ptr[5] != '\\') {
        return 0;
    }
    escape.ptr += 6;
    escape.len -= 6;
    if (!outrigger_json_unit(escape, &low) || low < 0xdc00 || low >= 0xe000) {
        return 0;
    }
    *out = 0x10000 + ((*out - 0xd800) << 10) + (low - 0xdc00);
    return 11;
}

/** Appends a character as UTF-8. */
static inline void outrigger_append_utf8(outrigger_writer_t *writer, uint32_t character)
{
    uint8_t lead = character < 0x80 ? 0 : character < 0x800 ? 0xc0 : character < 0x10000 ? 0xe0 : 0xf0;
    int shift = character < 0x80 ? 0 : character < 0x800 ? 6 : character < 0x10000 ? 12 : 18;
    uint8_t byte = (uint8_t)(lead | (character >> shift));
    outrigger_append(writer, &byte, 1);
    while (shift > 0) {
        shift -= 6;
        byte = (uint8_t)(0x80 | (character >> shift & 0x3f));
        outrigger_append(writer, &byte, 1);
    }
}

/** Appends the UTF-8 of a JSON string. False for anything else, with nothing useful appended. */
static inline bool outrigger_json_text(outrigger_bytes_t json, outrigger_writer_t *writer)
{
    size_t at = 1;
    if (json.len < 2 || json.ptr[0] != '"' || json.ptr[json.len - 1] != '"') {
        return false;
    }
    json.len--;
    for (at = 1; at < json.len; at++) {
        if (json.ptr[at] != '\\') {
            outrigger_append(writer, &json.ptr[at], 1);
        } else {
            outrigger_bytes_t escape = { json.ptr + at + 1, json.len - at - 1 };
            uint32_t character = 0;
            size_t len = outrigger_json_escape(escape, &character);
            if (len == 0) {
                return false;
            }
            outrigger_append_utf8(writer, character);
            at += len;
        }
    }
    return !writer->failed;
}

/** A hash from its 64 hexadecimal digits, as it is printed. False for anything else. */
static inline bool outrigger_hash_from_hex(outrigger_bytes_t digits, outrigger_hash_t *out)
{
    size_t at = 0;
    memset(out, 0, sizeof *out);
    if (digits.len != 2 * sizeof out->bytes) {
        return false;
    }
    for (at = 0; at < sizeof out->bytes; at++) {
        uint8_t high = outrigger_hex_digit(digits.ptr[2 * at]), low = outrigger_hex_digit(digits.ptr[2 * at + 1]);
        if (high == 16 || low == 16) {
            return false;
        }
        out->bytes[sizeof out->bytes - 1 - at] = (uint8_t)(high << 4 | low);
    }
    return true;
}

#ifdef __cplusplus
}
#endif

#endif
