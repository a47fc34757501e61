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

static void tip(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_tip_t best;
    int32_t status = outrigger_chain_tip(self->chain, call->token, &response, &best);
    if (status != OUTRIGGER_STATUS_OK) {
        outrigger_reply_failure(self->host, call->token, status, &response);
        return;
    }
    outrigger_print(&json, "{\"height\":%u,\"hash\":\"", (unsigned)best.height);
    outrigger_print_hash(&json, &best.hash);
    outrigger_print(&json, "\"}");
    outrigger_release(&response);
    outrigger_reply_written(self->host, call->token, &json);
}

/* A block named by its height, or by its hash in hexadecimal. */
static bool block_argument(const sample *self, const outrigger_call_t *call, outrigger_block_ref_t *out)
{
    outrigger_bytes_t json = outrigger_argument(call, 0);
    outrigger_writer_t text = OUTRIGGER_WRITER;
    bool good = true;
    memset(out, 0, sizeof *out);
    if (json.len > 0 && json.ptr[0] == '"') {
        out->tag = OUTRIGGER_BLOCK_REF_HASH;
        good = outrigger_json_text(json, &text)
            && outrigger_hash_from_hex(outrigger_written(&text), &out->as.hash.hash);
        if (!good) {
            outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_PARAMETER, "Not a block hash");
        }
        outrigger_writer_free(&text);
        return good;
    }
    out->tag = OUTRIGGER_BLOCK_REF_HEIGHT;
    return index_argument(self, call, 0, &out->as.height.height);
}

static void block_header(const sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_optional_block_info_t block;
    outrigger_block_ref_t named;
    outrigger_bytes_t header;
    int32_t status = 0;
    if (!block_argument(self, call, &named)) {
        return;
    }
    status = outrigger_chain_block_info(self->chain, call->token, &named, &response, &block);
    if (status != OUTRIGGER_STATUS_OK) {
        outrigger_reply_failure(self->host, call->token, status, &response);
        return;
    }
    outrigger_release(&response);
    if (!block.present) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_ADDRESS_OR_KEY, "Block not found");
        return;
    }
    header.ptr = block.value.header.bytes;
    header.len = sizeof block.value.header.bytes;
    outrigger_print(&json, "{\"height\":%u,\"header\":\"", (unsigned)block.value.height);
    outrigger_print_hex(&json, header);
    outrigger_print(&json, "\",\"next\":");
    if (block.value.next.present) {
        outrigger_print(&json, "\"");
        outrigger_print_hash(&json, &block.value.next.value);
        outrigger_print(&json, "\"}");
    } else {
        outrigger_print(&json, "null}");
    }
    outrigger_reply_written(self->host, call->token, &json);
}

static void wallet_info(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_wallet_info_t info;
    int32_t status = outrigger_wallet_info(self->wallet, call->token, &response, &info);
    if (status != OUTRIGGER_STATUS_OK) {
        outrigger_reply_failure(self->host, call->token, status, &response);
        return;
    }
    outrigger_print(&json, "{\"name\":");
    outrigger_print_json_text(&json, info.name);
    outrigger_print(&json, ",\"height\":%u,\"transactions\":%llu,\"locked\":%s}", (unsigned)info.synced.height,
        (unsigned long long)info.transactions, info.locked ? "true" : "false");
    /* The name pointed into the response, so that is released only now. */
    outrigger_release(&response);
    outrigger_reply_written(self->host, call->token, &json);
}

/* Prints what a transaction pays to the wallet, in satoshi. False when the message is damaged. */
static bool print_row(outrigger_writer_t *json, const outrigger_wallet_transaction_t *transaction)
{
    outrigger_reader_t outputs = transaction->outputs.items;
    uint64_t received = 0;
    uint32_t at = 0;
    for (at = 0; at < transaction->outputs.count; at++) {
        outrigger_wallet_output_t output;
        if (!outrigger_get_wallet_output(&outputs, &output)) {
            return false;
        }
        if (output.ownership == OUTRIGGER_OWNERSHIP_SPENDABLE) {
            received += output.value;
        }
    }
    outrigger_print(json, "{\"txid\":\"");
    outrigger_print_hash(json, &transaction->txid);
    outrigger_print(json, "\",\"coinbase\":%s,\"received\":%llu}", transaction->coinbase ? "true" : "false",
        (unsigned long long)received);
    return true;
}

static void history(const sample *self, const outrigger_call_t *call)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_history_query_t query;
    outrigger_history_batch_t batch;
    bool good = true;
    uint32_t at = 0;
    int32_t status = 0;
    memset(&query, 0, sizeof query);
    query.range.tag = OUTRIGGER_HISTORY_RANGE_ALL;
    query.reverse = true;
    if (!index_argument(self, call, 0, &query.limit)) {
        return;
    }
    if (query.limit == 0 || query.limit > self->most_transactions) {
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INVALID_PARAMETER, "Count out of range");
        return;
    }
    status = outrigger_wallet_history(self->wallet, call->token, &query, &response, &batch);
    if (status != OUTRIGGER_STATUS_OK) {
        outrigger_reply_failure(self->host, call->token, status, &response);
        return;
    }
    outrigger_print(&json, "[");
    for (at = 0; at < batch.rows.count && good; at++) {
        outrigger_history_row_t row;
        good = outrigger_get_history_row(&batch.rows.items, &row);
        outrigger_print(&json, "%s", at > 0 ? "," : "");
        good = good && print_row(&json, &row.transaction);
    }
    outrigger_print(&json, "]");
    outrigger_release(&response);
    if (good) {
        outrigger_reply_written(self->host, call->token, &json);
    } else {
        outrigger_writer_free(&json);
        outrigger_reply_error(self->host, call->token, OUTRIGGER_CODE_INTERNAL, "The wallet's answer is damaged");
    }
}

static void wait_for_height(sample *self, const outrigger_call_t *call)
{
    outrigger_writer_t json = OUTRIGGER_WRITER;
    outrigger_tip_t best;
    uint32_t height = 0;
    int32_t status = 0;
    if (!index_argument(self, call, 0, &height)) {
        return;
    }
    status = outrigger_chain_tip(self->chain, call->token, NULL, &best);
    if (status != OUTRIGGER_STATUS_OK) {
        outrigger_reply_failure(self->host, call->token, status, NULL);
    } else if (best.height >= height) {
        outrigger_print(&json, "{\"height\":%u,\"late\":false}", (unsigned)best.height);
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
        status = outrigger_log_write(
            self->log, call->token, OUTRIGGER_LEVEL_WARN, outrigger_written(&text), &response);
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
