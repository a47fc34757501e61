/* A plugin in C, built with nothing but outrigger.h, libc and pthreads: it reads the chain and a wallet, hears events,
 * answers one of its methods late, from a thread of its own, and keeps the private keys of wallets by a policy. */
#include "sample.h"

#ifndef SAMPLE_MINOR_NEEDED
#define SAMPLE_MINOR_NEEDED 0
#endif

#define METHOD(name, help, params) \
    "{\"name\": \"" name "\", \"category\": \"Sample\", \"help\": \"" help "\", \"params\": [" params "]}"
#define PARAM(name, type, help) \
    "{\"name\": \"" name "\", \"type\": \"" type "\", \"required\": true, \"help\": \"" help "\"}"

OUTRIGGER_MANIFEST(SAMPLE_MINOR_NEEDED,
    "{\"id\": \"c-sample\", \"version\": \"1.0.0\", \"summary\": \"A plugin in C.\","
    " \"services\": [\"chain/1\", \"log/1\"], \"provides\": [\"policy/1\"], \"events\": [\"tip\"],"
    " \"options\": [{\"name\": \"most_transactions\", \"type\": \"integer\", \"default\": 100,"
    " \"help\": \"The most transactions that chistory gives.\"}], \"methods\": ["
    METHOD("ctip", "The best block.", "") ","
    METHOD("cblockheader", "The header of a block.", PARAM("block", "any", "Its height or its hash.")) ","
    METHOD("cwalletinfo", "The wallet of the call.", "") ","
    METHOD("chistory", "The wallet's last transactions.", PARAM("count", "numeric", "How many.")) ","
    METHOD("cwaitforheight", "Waits until the chain has a height.", PARAM("height", "numeric", "The height.")) ","
    METHOD("cfail", "Fails.", PARAM("code", "numeric", "The code.") "," PARAM("message", "string", "The message.")) ","
    METHOD("cevents", "What was heard.", "") ","
    METHOD("cversions", "The versions of the interface.", "") ","
    METHOD("clog", "Writes to the log.", PARAM("text", "string", "What is written."))
    "]}");

/* Writes the reason of a refusal. */
static int32_t refuse(outrigger_owned_bytes_t *error, const char *reason)
{
    outrigger_copy(outrigger_text(reason), error);
    return OUTRIGGER_STATUS_REFUSED;
}

int32_t write_log(
    const sample *self, uint64_t scope, const char *level, outrigger_bytes_t line, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_print(&request, "{\"level\":\"%s\",\"message\":", level);
    outrigger_print_json_text(&request, line);
    outrigger_print(&request, "}");
    status = outrigger_ask(self->host, "log/1", "write", scope, outrigger_written(&request), response);
    outrigger_writer_free(&request);
    return status;
}

static void *create(void)
{
    return calloc(1, sizeof(sample));
}

static int32_t init(
    void *instance, const outrigger_host_t *host, outrigger_bytes_t options, outrigger_owned_bytes_t *error)
{
    sample *self = (sample *)instance;
    outrigger_bytes_t most = outrigger_json_member(options, "most_transactions");
    self->host = host;
    room_open(&self->room, host);
    if (!outrigger_json_integer(most, &self->most_transactions) || self->most_transactions < 1) {
        return refuse(error, "most_transactions must be at least 1");
    }
    return OUTRIGGER_STATUS_OK;
}

static int32_t start(void *instance, outrigger_owned_bytes_t *error)
{
    sample *self = (sample *)instance;
    outrigger_owned_bytes_t said = OUTRIGGER_NO_BYTES;
    if (!room_start(&self->room)) {
        return refuse(error, "the system gave no thread");
    }
    /* A log that cannot be written stops nothing. */
    write_log(self, 0, "info", outrigger_text("the plugin in C has started"), &said);
    outrigger_release(&said);
    return OUTRIGGER_STATUS_OK;
}

static int32_t call(void *instance, const outrigger_call_t *frame)
{
    answer((sample *)instance, frame);
    return OUTRIGGER_STATUS_OK;
}

static int32_t cancel(void *instance, uint64_t token)
{
    room_cancel(&((sample *)instance)->room, token);
    return OUTRIGGER_STATUS_OK;
}

static int32_t hear(void *instance, outrigger_bytes_t bytes)
{
    sample *self = (sample *)instance;
    outrigger_owned_bytes_t event = OUTRIGGER_NO_BYTES;
    int32_t status = outrigger_event_json(self->host, bytes, &event);
    if (status == OUTRIGGER_STATUS_OK) {
        room_hear(&self->room, outrigger_lend(&event));
    }
    outrigger_release(&event);
    return status;
}

static int32_t quiesce(void *instance)
{
    room_drain(&((sample *)instance)->room);
    return OUTRIGGER_STATUS_OK;
}

static int32_t stop(void *instance)
{
    /* Also after an `init` that refused, or without a `start`. */
    room_end(&((sample *)instance)->room);
    return OUTRIGGER_STATUS_OK;
}

static void destroy(void *instance)
{
    room_close(&((sample *)instance)->room);
    free(instance);
}

#ifdef SAMPLE_OF_THE_FUTURE
/* What a later minor version of the interface might add to the table. */
static int32_t future(void *instance)
{
    (void)instance;
    abort();
}
#define FUTURE , future
#else
#define FUTURE
#endif

const outrigger_plugin_t outrigger_plugin = {
    OUTRIGGER_PLUGIN_HEAD(SAMPLE_MINOR_NEEDED),
    create, init, start, call, cancel, hear, quiesce, stop, destroy FUTURE
};
