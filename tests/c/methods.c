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

/* Asks a service. False when it refuses: the call is answered then, and nothing is to be released. */
static bool ask(const sample *self, const outrigger_call_t *call, const char *service, const char *function,
    outrigger_bytes_t request, outrigger_owned_bytes_t *response)
{
    int32_t status = outrigger_ask(self->host, service, function, call->token, request, response);
    if (status != OUTRIGGER_STATUS_OK) {
        outrigger_reply_failure(self->host, call->token, response);
    }
    return status == OUTRIGGER_STATUS_OK;
}

/* Prints a member of an object as it is, or null, behind `before`. */
static void print_member(outrigger_writer_t *json, const char *before, outrigger_bytes_t object, const char *name)
{
    outrigger_bytes_t value = outrigger_json_member(object, name);
    outrigger_print(json, "%s\"%s\":", before, name);
    outrigger_append(json, value.len > 0 ? value : outrigger_text("null"));
}

static void tip(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t json = OUTRIGGER_WRITER;
    if (!ask(self, call, "chain/1", "tip", outrigger_text("{}"), &response)) {
        return;
    }
    print_member(&json, "{", outrigger_lend(&response), "height");
    print_member(&json, ",", outrigger_lend(&response), "hash");
    outrigger_print(&json, "}");
    outrigger_release(&response);
    outrigger_reply_written(self->host, call->token, &json);
}

/* Prints the block that is named by its height, or by its hash in hexadecimal. */
static bool print_block_argument(const sample *self, const outrigger_call_t *call, outrigger_writer_t *request)
{
    outrigger_bytes_t block = outrigger_argument(call, 0);
    outrigger_writer_t hash = OUTRIGGER_WRITER;
    uint32_t height = 0;
    bool good = true;
    if (block.len > 0 && block.ptr[0] == '"') {
        good = outrigger_json_hex(block, &hash) && hash.len == 32;
        outrigger_writer_free(&hash);
        if (!good) {
            outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_PARAMETER, "Not a block hash");
        }
        outrigger_print(request, "{\"block\":{\"hash\":{\"hash\":");
        outrigger_append(request, block);
        outrigger_print(request, "}}}");
        return good;
    }
    good = index_argument(self, call, 0, &height);
    outrigger_print(request, "{\"block\":{\"height\":{\"height\":%u}}}", (unsigned)height);
    return good;
}

static void block_header(const sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t request = OUTRIGGER_WRITER, json = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    if (print_block_argument(self, call, &request) &&
        ask(self, call, "chain/1", "block_info", outrigger_written(&request), &response)) {
        outrigger_bytes_t block = outrigger_lend(&response);
        if (outrigger_is(block, "null")) {
            outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_ADDRESS_OR_KEY, "Block not found");
        } else {
            print_member(&json, "{", block, "height");
            print_member(&json, ",", block, "header");
            print_member(&json, ",", block, "next");
            outrigger_print(&json, "}");
            outrigger_reply_written(self->host, call->token, &json);
        }
        outrigger_release(&response);
    }
    outrigger_writer_free(&request);
}

static void wallet_info(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_bytes_t info;
    if (!ask(self, call, "wallet-read/1", "info", outrigger_text("{}"), &response)) {
        return;
    }
    info = outrigger_lend(&response);
    print_member(&json, "{", info, "name");
    print_member(&json, ",", outrigger_json_member(info, "synced"), "height");
    print_member(&json, ",", info, "transactions");
    print_member(&json, ",", info, "locked");
    outrigger_print(&json, "}");
    /* The members pointed into the response, so that is released only now. */
    outrigger_release(&response);
    outrigger_reply_written(self->host, call->token, &json);
}

/* What outputs of a transaction pay to the wallet, in satoshi. */
static int64_t received(outrigger_bytes_t outputs)
{
    outrigger_bytes_t rest = outrigger_json_inside(outputs), output;
    int64_t value = 0, sum = 0;
    while (outrigger_json_next(&rest, &output)) {
        if (outrigger_is(outrigger_json_member(output, "ownership"), "\"spendable\"") &&
            outrigger_json_integer(outrigger_json_member(output, "value"), &value)) {
            sum += value;
        }
    }
    return sum;
}

static void history(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t request = OUTRIGGER_WRITER, json = OUTRIGGER_WRITER;
    outrigger_bytes_t rest, row;
    uint32_t limit = 0;
    bool asked = false;
    if (!index_argument(self, call, 0, &limit)) {
        return;
    }
    if (limit == 0 || limit > self->most_transactions) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_PARAMETER, "Count out of range");
        return;
    }
    /* All transactions, the newest first, from the beginning. */
    outrigger_print(&request, "{\"query\":{\"range\":\"all\",\"reverse\":true,\"limit\":%u}}", (unsigned)limit);
    asked = ask(self, call, "wallet-read/1", "history", outrigger_written(&request), &response);
    outrigger_writer_free(&request);
    if (!asked) {
        return;
    }
    rest = outrigger_json_inside(outrigger_json_member(outrigger_lend(&response), "rows"));
    outrigger_print(&json, "[");
    while (outrigger_json_next(&rest, &row)) {
        outrigger_bytes_t transaction = outrigger_json_member(row, "transaction");
        print_member(&json, json.len > 1 ? ",{" : "{", transaction, "txid");
        print_member(&json, ",", transaction, "coinbase");
        outrigger_print(&json, ",\"received\":%lld}", (long long)received(outrigger_json_member(transaction, "outputs")));
    }
    outrigger_print(&json, "]");
    outrigger_release(&response);
    outrigger_reply_written(self->host, call->token, &json);
}

static void wait_for_height(sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t json = OUTRIGGER_WRITER;
    uint32_t height = 0;
    int64_t best = 0;
    bool known = false;
    if (!index_argument(self, call, 0, &height) ||
        !ask(self, call, "chain/1", "tip", outrigger_text("{}"), &response)) {
        return;
    }
    known = outrigger_json_integer(outrigger_json_member(outrigger_lend(&response), "height"), &best);
    outrigger_release(&response);
    if (!known) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INTERNAL, "The service's answer is damaged");
    } else if (best >= height) {
        outrigger_print(&json, "{\"height\":%lld,\"late\":false}", (long long)best);
        outrigger_reply_written(self->host, call->token, &json);
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
        status = write_log(self, call->token, "warn", outrigger_written(&text), &response);
        if (status == OUTRIGGER_STATUS_OK) {
            outrigger_reply_json(self->host, call->token, outrigger_text("true"));
        } else {
            outrigger_reply_failure(self->host, call->token, &response);
        }
    }
    outrigger_release(&response);
    outrigger_writer_free(&text);
}

/* Judges what a wallet is asked for: everything but private keys. */
static void judge(const sample *self, const outrigger_call_t *call)
{
    outrigger_bytes_t act = outrigger_json_member(outrigger_argument(call, 0), "act");
    bool allowed = !outrigger_is(act, "\"give_keys\"");
    const char *judgement = allowed ? "\"allow\"" : "{\"refuse\":{\"reason\":\"Keys stay here\"}}";
    outrigger_reply_json(self->host, call->token, outrigger_text(judgement));
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
    } else if (outrigger_is(call->method, "policy/1.judge")) {
        judge(self, call);
    } else if (outrigger_is(call->method, "policy/1.save") || outrigger_is(call->method, "policy/1.restore")) {
        /* It keeps nothing for a wallet's backup. */
        outrigger_reply_json(self->host, call->token, outrigger_text("null"));
    } else {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_METHOD_NOT_FOUND, "Method not found");
    }
}
