/* Checks the header's own functions: text, JSON, writers, requests, replies. */
#include "outrigger.h"

static int line_of_failure = 0;
#define CHECK(holds) \
    do { \
        if (!(holds)) { \
            line_of_failure = __LINE__; \
            fprintf(stderr, "line %d: not so: %s\n", __LINE__, #holds); \
            exit(1); \
        } \
    } while (0)

static bool is_argument(const char *params, size_t position, const char *expected)
{
    outrigger_call_t call;
    memset(&call, 0, sizeof call);
    call.struct_size = sizeof call;
    call.params = outrigger_text(params);
    return outrigger_is(outrigger_argument(&call, position), expected);
}

static void arguments(void)
{
    CHECK(is_argument("[]", 0, "") && is_argument("[]", 1, "") && is_argument("", 0, "") && is_argument(" [ ] ", 0, ""));
    CHECK(is_argument("[1]", 0, "1") && is_argument("[1]", 1, ""));
    CHECK(is_argument(" [ 1 ,\n{\"a\": [1, 2]} , \"x,]\\\"\" ] ", 0, "1"));
    CHECK(is_argument(" [ 1 ,\n{\"a\": [1, 2]} , \"x,]\\\"\" ] ", 1, "{\"a\": [1, 2]}"));
    CHECK(is_argument(" [ 1 ,\n{\"a\": [1, 2]} , \"x,]\\\"\" ] ", 2, "\"x,]\\\"\""));
    CHECK(is_argument("[null,[],\"null\"]", 0, "") && is_argument("[null,[],\"null\"]", 2, "\"null\""));
    CHECK(is_argument("[[[]],{}]", 0, "[[]]") && is_argument("[[[]],{}]", 1, "{}") && is_argument("[[[]],{}]", 9, ""));
}

static bool is_member(const char *json, const char *name, const char *expected)
{
    return outrigger_is(outrigger_json_member(outrigger_text(json), name), expected);
}

static void members(void)
{
    static const char *const options = " { \"a\" : {\"b\": \"},\\\"\"} , \"b\":[1, 2],\"bc\":\"a:b\" ,\"x\\\"\":1, \"d\": 4 } ";
    CHECK(is_member("{}", "a", "") && is_member("[]", "a", "") && is_member("", "a", "") && is_member("{\"a\":1}", "", ""));
    CHECK(is_member("{\"a\":1}", "a", "1") && is_member("{\"a\":1}", "b", "") && is_member("{\"a\":null}", "a", ""));
    CHECK(is_member(options, "a", "{\"b\": \"},\\\"\"}") && is_member(options, "b", "[1, 2]") && is_member(options, "d", "4"));
    CHECK(is_member(options, "bc", "\"a:b\"") && is_member(options, "x", "") && is_member(options, "c", ""));
}

static void items(void)
{
    outrigger_bytes_t rest = outrigger_json_inside(outrigger_text(" [1 , null,[2,3] , \"a,b\"]")), item;
    CHECK(outrigger_json_next(&rest, &item) && outrigger_is(item, "1"));
    CHECK(outrigger_json_next(&rest, &item) && outrigger_is(item, "null") && outrigger_json_present(item).len == 0);
    CHECK(outrigger_json_next(&rest, &item) && outrigger_is(item, "[2,3]"));
    CHECK(outrigger_json_next(&rest, &item) && outrigger_is(item, "\"a,b\"") && outrigger_json_present(item).len == 5);
    CHECK(!outrigger_json_next(&rest, &item) && !outrigger_json_next(&rest, &item) && item.len == 0);
    rest = outrigger_json_inside(outrigger_text("5"));
    CHECK(rest.len == 0 && !outrigger_json_next(&rest, &item));
}

static bool is_integer(const char *json, int64_t expected)
{
    int64_t number = 1;
    return outrigger_json_integer(outrigger_text(json), &number) && number == expected;
}

static void integers(void)
{
    static const char *const none[] = { "", "-", "1.0", "1e3", "x", "\"1\"", "9223372036854775808", "-9223372036854775809",
        "99999999999999999999", "[1]", "1 2", "+1" };
    int64_t number = 0;
    size_t at = 0;
    CHECK(is_integer("0", 0) && is_integer("-0", 0) && is_integer("-17", -17) && is_integer("42", 42));
    CHECK(is_integer("9223372036854775807", INT64_MAX) && is_integer("-9223372036854775808", INT64_MIN));
    for (at = 0; at < sizeof none / sizeof none[0]; at++) {
        CHECK(!outrigger_json_integer(outrigger_text(none[at]), &number) && number == 0);
    }
}

static bool is_text(const char *json, const char *expected)
{
    outrigger_writer_t text = OUTRIGGER_WRITER;
    bool good = outrigger_json_text(outrigger_text(json), &text) && outrigger_is(outrigger_written(&text), expected);
    outrigger_writer_free(&text);
    return good;
}

static void texts(void)
{
    static const char *const none[] = { "", "\"", "x", "1", "\"\\\"", "\"\\x\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud83d\"",
        "\"\\ud83d\\n\"", "\"\\ud83d\\u0041\"", "\"\\ude00\"", "\"\\ud83d\\u\"" };
    outrigger_writer_t json = OUTRIGGER_WRITER, again = OUTRIGGER_WRITER;
    outrigger_bytes_t all;
    uint8_t bytes[127];
    size_t at = 0;
    CHECK(is_text("\"\"", "") && is_text("\"plain\"", "plain") && is_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"));
    CHECK(is_text("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00!\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!"));
    for (at = 0; at < sizeof none / sizeof none[0]; at++) {
        CHECK(!outrigger_json_text(outrigger_text(none[at]), &json));
    }
    json.len = 0;
    /* What is printed is read again. */
    for (at = 0; at < sizeof bytes; at++) {
        bytes[at] = (uint8_t)(at + 1);
    }
    all.ptr = bytes;
    all.len = sizeof bytes;
    outrigger_print_json_text(&json, all);
    CHECK(outrigger_json_text(outrigger_written(&json), &again) && again.len == sizeof bytes);
    CHECK(memcmp(again.bytes, bytes, sizeof bytes) == 0);
    outrigger_writer_free(&json);
    outrigger_writer_free(&again);
}

static void writers(void)
{
    outrigger_writer_t writer = OUTRIGGER_WRITER, back = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t copy = OUTRIGGER_NO_BYTES;
    outrigger_bytes_t nothing = { NULL, 0 }, huge = { (const uint8_t *)"x", SIZE_MAX / 2 };
    static const char *const none[] = { "", "\"", "\"0\"", "\"0g\"", "\"/0\"", "\":0\"", "\"00", "00" };
    size_t at = 0;
    CHECK(outrigger_written(&writer).len == 0);
    for (at = 0; at < 1000; at++) {
        outrigger_print(&writer, "%s %d,", "item", (int)at);
    }
    CHECK(!writer.failed && writer.len == 1000 * 6 + 10 + 90 * 2 + 900 * 3);
    CHECK(memcmp(writer.bytes + writer.len - 9, "item 999,", 9) == 0);
    outrigger_append(&writer, huge);
    CHECK(writer.failed);
    outrigger_print(&writer, "nothing more");
    CHECK(writer.len == 8890);
    outrigger_writer_free(&writer);
    CHECK(!writer.failed && writer.bytes == NULL);
    outrigger_print(&writer, "\"");
    outrigger_print_hex(&writer, outrigger_text("\x01\xab\xff"));
    outrigger_print(&writer, "\"");
    CHECK(outrigger_is(outrigger_written(&writer), "\"01abff\""));
    CHECK(outrigger_json_hex(outrigger_written(&writer), &back) && outrigger_is(outrigger_written(&back), "\x01\xab\xff"));
    for (at = 0; at < sizeof none / sizeof none[0]; at++) {
        CHECK(!outrigger_json_hex(outrigger_text(none[at]), &back));
    }
    CHECK(outrigger_copy(outrigger_written(&writer), &copy) && copy.len == 8 && copy.ptr != writer.bytes);
    outrigger_release(&copy);
    outrigger_release(&copy);
    CHECK(copy.ptr == NULL && outrigger_copy(nothing, &copy) && copy.release == NULL);
    outrigger_writer_free(&writer);
    outrigger_writer_free(&back);
}

/* A host that keeps the last reply. */
static int32_t last_code = 0;
static outrigger_owned_bytes_t last_body = OUTRIGGER_NO_BYTES;

static int32_t reply(const void *ctx, uint64_t token, int32_t code, outrigger_owned_bytes_t body)
{
    CHECK(ctx == (const void *)&last_code && token == 5);
    outrigger_release(&last_body);
    last_code = code;
    last_body = body;
    return OUTRIGGER_STATUS_STALE;
}

/* Gives back what it is asked. */
static int32_t ask(const void *ctx, outrigger_bytes_t service, outrigger_bytes_t function, uint64_t scope,
    outrigger_bytes_t request, outrigger_owned_bytes_t *response)
{
    CHECK(ctx == (const void *)&last_code && outrigger_is(service, "chain/1") && outrigger_is(function, "tip") && scope == 5);
    CHECK(outrigger_copy(request, response));
    return outrigger_is(request, "{}") ? OUTRIGGER_STATUS_OK : OUTRIGGER_STATUS_REFUSED;
}

static int32_t event(const void *ctx, outrigger_bytes_t bytes, outrigger_owned_bytes_t *response)
{
    CHECK(ctx == (const void *)&last_code && outrigger_copy(bytes, response));
    return OUTRIGGER_STATUS_OK;
}

static bool replied(int32_t status, int32_t code, const char *body)
{
    return status == OUTRIGGER_STATUS_STALE && last_code == code && outrigger_is(outrigger_lend(&last_body), body);
}

static bool asks(const outrigger_host_t *host, const char *request, int32_t status, outrigger_owned_bytes_t *response)
{
    return outrigger_ask(host, "chain/1", "tip", 5, outrigger_text(request), response) == status;
}

static void replies(void)
{
    outrigger_host_t host;
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    memset(&host, 0, sizeof host);
    host.struct_size = sizeof host;
    host.ctx = (const void *)&last_code;
    host.reply = reply;
    host.ask_json = ask;
    host.event_json = event;
    CHECK(replied(outrigger_reply_json(&host, 5, outrigger_text("true")), 0, "true"));
    CHECK(replied(outrigger_reply_error(&host, 5, -8, "too \"much\""), -8, "too \"much\""));
    CHECK(replied(outrigger_reply_error(&host, 5, 0, "no code"), OUTRIGGER_CODE_MISC, "no code"));
    outrigger_print(&json, "{\"a\": %d}", 1);
    CHECK(replied(outrigger_reply_written(&host, 5, &json), 0, "{\"a\": 1}") && json.bytes == NULL);
    outrigger_print(&json, "x");
    json.failed = true;
    CHECK(replied(outrigger_reply_written(&host, 5, &json), OUTRIGGER_CODE_OUT_OF_MEMORY, "Out of memory"));
    CHECK(json.bytes == NULL);
    CHECK(asks(&host, "{}", OUTRIGGER_STATUS_OK, &response) && outrigger_is(outrigger_lend(&response), "{}"));
    outrigger_release(&response);
    CHECK(outrigger_event_json(&host, outrigger_text("tip"), &response) == OUTRIGGER_STATUS_OK);
    CHECK(outrigger_is(outrigger_lend(&response), "tip"));
    outrigger_release(&response);
    CHECK(asks(&host, "{\"code\": -4, \"message\": \"a \\\"b\\\"\"}", OUTRIGGER_STATUS_REFUSED, &response));
    CHECK(replied(outrigger_reply_failure(&host, 5, &response), -4, "a \"b\"") && response.ptr == NULL);
    CHECK(asks(&host, "{\"code\": 0, \"message\": \"\"}", OUTRIGGER_STATUS_REFUSED, &response));
    CHECK(replied(outrigger_reply_failure(&host, 5, &response), OUTRIGGER_CODE_INTERNAL, "Internal error"));
    CHECK(asks(&host, "{\"code\": 4294967295, \"message\": \"\"}", OUTRIGGER_STATUS_REFUSED, &response));
    CHECK(replied(outrigger_reply_failure(&host, 5, &response), OUTRIGGER_CODE_INTERNAL, "Internal error"));
    /* A host of minor 0. */
    host.struct_size = offsetof(outrigger_host_t, wanted);
    CHECK(asks(&host, "{}", OUTRIGGER_STATUS_UNSUPPORTED, &response) && response.len == 0);
    CHECK(outrigger_event_json(&host, outrigger_text("tip"), &response) == OUTRIGGER_STATUS_UNSUPPORTED);
    CHECK(replied(outrigger_reply_failure(&host, 5, &response), OUTRIGGER_CODE_INTERNAL, "Internal error"));
    CHECK(outrigger_is_wanted(&host, 5));
    outrigger_release(&last_body);
}

int main(void)
{
    arguments();
    members();
    items();
    integers();
    texts();
    writers();
    replies();
    return line_of_failure;
}
