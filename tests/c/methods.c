/* What the plugin's methods answer. */
#include "sample.h"

/* The argument at a position as a whole number that fits an index; answers the call with an error where it is none. */
static bool index_argument(const sample *self, const outrigger_call_t *call, size_t position, uint32_t *out)
{
    int64_t number = 0;
    *out = 0;
    if (!outrigger_json_integer(outrigger_argument(call, position), &number)) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_TYPE, "Expected a whole number");
        return false;
    }
    if (number < 0 || number > INT32_MAX) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_PARAMETER, "Number out of range");
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

/* Asks a service with what was written. False when it refuses: the call is answered then, and nothing is to be released. */
static bool ask(const sample *self, const outrigger_call_t *call, const outrigger_service_t *service, size_t function,
    outrigger_writer_t *request, outrigger_owned_bytes_t *response)
{
    int32_t status = outrigger_ask_written(service, function, call->token, request, response);
    if (status != OUTRIGGER_STATUS_OK) {
        outrigger_reply_failure(self->host, call->token, status, response);
    }
    return status == OUTRIGGER_STATUS_OK;
}

/* Answers with what was printed from a response, or with an error where the response was damaged. */
static void reply_read(
    const sample *self, const outrigger_call_t *call, const outrigger_reader_t *reader, outrigger_writer_t *json)
{
    if (reader->failed) {
        outrigger_writer_free(json);
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INTERNAL, "The service's answer is damaged");
    } else {
        outrigger_reply_written(self->host, call->token, json);
    }
}

static void tip(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t request = OUTRIGGER_WRITER, json = OUTRIGGER_WRITER;
    outrigger_reader_t reader;
    outrigger_hash_t hash;
    uint32_t height = 0;
    if (!ask(self, call, self->chain, OUTRIGGER_FN_CHAIN_TIP, &request, &response)) {
        return;
    }
    reader = outrigger_read(outrigger_lend(&response));
    outrigger_get_hash(&reader, &hash);
    outrigger_get_u32(&reader, &height);
    outrigger_release(&response);
    outrigger_print(&json, "{\"height\":%u,\"hash\":\"", (unsigned)height);
    outrigger_print_hash(&json, &hash);
    outrigger_print(&json, "\"}");
    reply_read(self, call, &reader, &json);
}

/* Writes a `block_ref`: the block that is named by its height, or by its hash in hexadecimal. */
static bool put_block_argument(const sample *self, const outrigger_call_t *call, outrigger_writer_t *request)
{
    outrigger_bytes_t json = outrigger_argument(call, 0);
    outrigger_writer_t text = OUTRIGGER_WRITER;
    outrigger_hash_t hash;
    uint32_t height = 0;
    bool good = true;
    if (json.len > 0 && json.ptr[0] == '"') {
        good = outrigger_json_text(json, &text) && outrigger_hash_from_hex(outrigger_written(&text), &hash);
        outrigger_writer_free(&text);
        if (!good) {
            outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_PARAMETER, "Not a block hash");
            return false;
        }
        outrigger_put_u8(request, OUTRIGGER_BLOCK_REF_HASH);
        outrigger_put_hash(request, &hash);
        return true;
    }
    good = index_argument(self, call, 0, &height);
    outrigger_put_u8(request, OUTRIGGER_BLOCK_REF_HEIGHT);
    outrigger_put_u32(request, height);
    return good;
}

/* Passes over an `optional u32`. */
static void skip_optional_u32(outrigger_reader_t *reader)
{
    bool present = false;
    if (outrigger_get_bool(reader, &present) && present) {
        outrigger_skip(reader, 4);
    }
}

/* Prints a `block_info`. */
static void print_block(outrigger_writer_t *json, outrigger_reader_t *reader)
{
    outrigger_bytes_t header = { NULL, 80 };
    outrigger_hash_t next;
    uint32_t height = 0;
    bool present = false;
    outrigger_skip(reader, 32);
    if (!outrigger_take(reader, header.len, &header.ptr)) {
        return;
    }
    outrigger_get_u32(reader, &height);
    outrigger_skip(reader, 32); /* The work. */
    skip_optional_u32(reader);
    outrigger_skip(reader, 4 + 1 + 1); /* The median time, the state, and whether it is in the best chain. */
    outrigger_print(json, "{\"height\":%u,\"header\":\"", (unsigned)height);
    outrigger_print_hex(json, header);
    outrigger_print(json, "\",\"next\":");
    if (outrigger_get_bool(reader, &present) && present && outrigger_get_hash(reader, &next)) {
        outrigger_print(json, "\"");
        outrigger_print_hash(json, &next);
        outrigger_print(json, "\"}");
    } else {
        outrigger_print(json, "null}");
    }
}

static void block_header(const sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t request = OUTRIGGER_WRITER, json = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    bool known = false;
    if (!put_block_argument(self, call, &request)) {
        outrigger_writer_free(&request);
        return;
    }
    if (!ask(self, call, self->chain, OUTRIGGER_FN_CHAIN_BLOCK_INFO, &request, &response)) {
        return;
    }
    reader = outrigger_read(outrigger_lend(&response));
    outrigger_get_bool(&reader, &known);
    if (!known) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_ADDRESS_OR_KEY, "Block not found");
    } else {
        print_block(&json, &reader);
        reply_read(self, call, &reader, &json);
    }
    outrigger_release(&response);
}

static void wallet_info(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t request = OUTRIGGER_WRITER, json = OUTRIGGER_WRITER;
    outrigger_reader_t reader;
    outrigger_bytes_t name;
    uint32_t height = 0;
    uint64_t transactions = 0;
    bool locked = false, rescans = false;
    if (!ask(self, call, self->wallet, OUTRIGGER_FN_WALLET_READ_INFO, &request, &response)) {
        return;
    }
    reader = outrigger_read(outrigger_lend(&response));
    outrigger_get_bytes(&reader, &name);
    outrigger_skip(&reader, 32);
    outrigger_get_u32(&reader, &height);
    outrigger_skip(&reader, 4 + 4 + 4); /* The rest of `synced`, and four answers to yes or no. */
    outrigger_get_bool(&reader, &locked);
    outrigger_skip(&reader, 8);
    if (outrigger_get_bool(&reader, &rescans) && rescans) {
        outrigger_skip(&reader, 8 + 4);
    }
    outrigger_get_u64(&reader, &transactions);
    outrigger_print(&json, "{\"name\":");
    outrigger_print_json_text(&json, name);
    outrigger_print(&json, ",\"height\":%u,\"transactions\":%llu,\"locked\":%s}", (unsigned)height,
        (unsigned long long)transactions, locked ? "true" : "false");
    /* The name pointed into the response, so that is released only now. */
    outrigger_release(&response);
    reply_read(self, call, &reader, &json);
}

/* Passes over a `tx_state`. */
static void skip_state(outrigger_reader_t *reader)
{
    uint8_t tag = 0;
    outrigger_get_u8(reader, &tag);
    if (tag == OUTRIGGER_TX_STATE_CONFIRMED) {
        outrigger_skip(reader, 32 + 4 + 4 + 4);
    } else if (tag == OUTRIGGER_TX_STATE_CONFLICTED) {
        outrigger_skip(reader, 32 + 4);
    }
}

/* Passes over a list whose items take `size` bytes each. */
static void skip_list(outrigger_reader_t *reader, size_t size)
{
    uint32_t count = 0;
    outrigger_get_u32(reader, &count);
    outrigger_skip(reader, size * count);
}

/* What a `list of wallet_output` pays to the wallet, in satoshi. */
static uint64_t received(outrigger_reader_t *reader)
{
    uint64_t value = 0, sum = 0;
    uint32_t count = 0;
    uint8_t ownership = 0;
    bool labelled = false;
    for (outrigger_get_u32(reader, &count); count > 0 && !reader->failed; count--) {
        outrigger_get_u64(reader, &value);
        outrigger_skip_bytes(reader);
        outrigger_get_u8(reader, &ownership);
        outrigger_skip(reader, 1);
        if (outrigger_get_bool(reader, &labelled) && labelled) {
            outrigger_skip_bytes(reader);
        }
        skip_list(reader, 4);
        sum += ownership == OUTRIGGER_OWNERSHIP_SPENDABLE ? value : 0;
    }
    return sum;
}

/* Prints a `history_row`. */
static void print_row(outrigger_writer_t *json, outrigger_reader_t *rows)
{
    outrigger_bytes_t frame;
    outrigger_reader_t row;
    outrigger_hash_t txid;
    uint32_t notes = 0;
    bool coinbase = false, unsettled = false;
    uint64_t sum = 0;
    outrigger_get_bytes(rows, &frame);
    row = outrigger_read(frame);
    outrigger_skip(&row, 1);
    skip_state(&row);
    outrigger_get_hash(&row, &txid);
    outrigger_skip(&row, 32 + 8 + 8 + 8);
    outrigger_get_bool(&row, &coinbase);
    outrigger_skip(&row, 1 + 4 + 8 + 8 + 8);
    for (outrigger_get_u32(&row, &notes); notes > 0 && !row.failed; notes--) {
        outrigger_skip_bytes(&row);
        outrigger_skip_bytes(&row);
    }
    skip_list(&row, 32 + 4);
    sum = received(&row);
    if (row.failed) {
        outrigger_fail(rows);
    }
    if (outrigger_get_bool(rows, &unsettled) && unsettled) {
        skip_list(rows, 32);
        skip_list(rows, 32);
        outrigger_skip(rows, 1 + 1);
    }
    outrigger_print(json, "{\"txid\":\"");
    outrigger_print_hash(json, &txid);
    outrigger_print(json, "\",\"coinbase\":%s,\"received\":%llu}", coinbase ? "true" : "false", (unsigned long long)sum);
}

static void history(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t request = OUTRIGGER_WRITER, json = OUTRIGGER_WRITER;
    outrigger_reader_t reader;
    uint32_t limit = 0, count = 0, at = 0;
    if (!index_argument(self, call, 0, &limit)) {
        return;
    }
    if (limit == 0 || limit > self->most_transactions) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_PARAMETER, "Count out of range");
        return;
    }
    /* A `history_query`: all transactions, the newest first, from the beginning. */
    outrigger_put_u8(&request, OUTRIGGER_HISTORY_RANGE_ALL);
    outrigger_put_bool(&request, true);
    outrigger_put_bool(&request, false);
    outrigger_put_u32(&request, limit);
    if (!ask(self, call, self->wallet, OUTRIGGER_FN_WALLET_READ_HISTORY, &request, &response)) {
        return;
    }
    reader = outrigger_read(outrigger_lend(&response));
    outrigger_get_u32(&reader, &count);
    outrigger_print(&json, "[");
    for (at = 0; at < count && !reader.failed; at++) {
        outrigger_print(&json, "%s", at > 0 ? "," : "");
        print_row(&json, &reader);
    }
    outrigger_print(&json, "]");
    outrigger_release(&response);
    reply_read(self, call, &reader, &json);
}

static void wait_for_height(sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t request = OUTRIGGER_WRITER, json = OUTRIGGER_WRITER;
    outrigger_reader_t reader;
    uint32_t height = 0, best = 0;
    if (!index_argument(self, call, 0, &height) ||
        !ask(self, call, self->chain, OUTRIGGER_FN_CHAIN_TIP, &request, &response)) {
        return;
    }
    reader = outrigger_read(outrigger_lend(&response));
    outrigger_skip(&reader, 32);
    outrigger_get_u32(&reader, &best);
    outrigger_release(&response);
    if (reader.failed || best >= height) {
        outrigger_print(&json, "{\"height\":%u,\"late\":false}", (unsigned)best);
        reply_read(self, call, &reader, &json);
    } else if (!room_keep(&self->room, call->token, height)) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_MISC, "Too many calls wait");
    }
}

/* Answers the error that the caller asks for. */
static void fail(const sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t message = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t body = OUTRIGGER_NO_BYTES;
    int64_t code = 0;
    if (!outrigger_json_integer(outrigger_argument(call, 0), &code) || code < INT32_MIN || code > INT32_MAX || code == 0) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_TYPE, "Expected an error code");
    } else if (!outrigger_json_text(outrigger_argument(call, 1), &message) || message.len == 0) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_TYPE, "Expected a message");
    } else {
        /* A message that may hold a zero byte is no C string. */
        outrigger_copy(outrigger_written(&message), &body);
        outrigger_reply(self->host, call->token, (int32_t)code, &body);
    }
    outrigger_writer_free(&message);
}

static void events(sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t json = OUTRIGGER_WRITER;
    pthread_mutex_lock(&self->room.lock);
    outrigger_print(&json, "{\"heard\":%llu,\"height\":%u,\"waiting\":%u,\"cancelled\":%llu}",
        (unsigned long long)self->room.events, (unsigned)self->room.height, (unsigned)self->room.count,
        (unsigned long long)self->room.cancelled);
    pthread_mutex_unlock(&self->room.lock);
    outrigger_reply_written(self->host, call->token, &json);
}

/* What plugin and host have of the interface. */
static void versions(const sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_print(&json, "{\"built\":\"%u.%u\",\"host\":\"%u.%u\"", (unsigned)OUTRIGGER_ABI_MAJOR,
        (unsigned)OUTRIGGER_ABI_MINOR, (unsigned)self->host->abi_major, (unsigned)self->host->abi_minor);
#if OUTRIGGER_ABI_MINOR >= 1
    outrigger_print(&json, ",\"wanted\":%s,\"deadline\":%s", outrigger_is_wanted(self->host, call->token) ? "true" : "false",
        OUTRIGGER_HAS(outrigger_call_t, call, deadline_ms) ? "true" : "false");
#endif
#ifdef SAMPLE_OF_THE_FUTURE
    outrigger_print(&json, ",\"future\":%s", OUTRIGGER_HAS(outrigger_host_t, self->host, future) ? "true" : "false");
#endif
    outrigger_print(&json, "}");
    outrigger_reply_written(self->host, call->token, &json);
}

static void log_text(const sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t text = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    if (!outrigger_json_text(outrigger_argument(call, 0), &text)) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_TYPE, "Expected a text");
    } else {
        status = write_log(self, call->token, OUTRIGGER_LEVEL_WARN, outrigger_written(&text), &response);
        if (status == OUTRIGGER_STATUS_OK) {
            outrigger_reply_json(self->host, call->token, outrigger_text("true"));
        } else {
            outrigger_reply_failure(self->host, call->token, status, &response);
        }
    }
    outrigger_release(&response);
    outrigger_writer_free(&text);
}

void answer(sample *self, const outrigger_call_t *call)
{
    if (outrigger_is(call->method, "ctip")) {
        tip(self, call);
    } else if (outrigger_is(call->method, "cblockheader")) {
        block_header(self, call);
    } else if (outrigger_is(call->method, "cwalletinfo")) {
        wallet_info(self, call);
    } else if (outrigger_is(call->method, "chistory")) {
        history(self, call);
    } else if (outrigger_is(call->method, "cwaitforheight")) {
        wait_for_height(self, call);
    } else if (outrigger_is(call->method, "cfail")) {
        fail(self, call);
    } else if (outrigger_is(call->method, "cevents")) {
        events(self, call);
    } else if (outrigger_is(call->method, "cversions")) {
        versions(self, call);
    } else if (outrigger_is(call->method, "clog")) {
        log_text(self, call);
    } else {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_METHOD_NOT_FOUND, "Method not found");
    }
}
