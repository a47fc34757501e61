/* What the sampled questions share: a service that is a stand-in for the host's. */
#include "outrigger_json.h"
#include "outrigger_services.h"

static void require(bool holds, const char *what)
{
    if (!holds) {
        fflush(stdout);
        fprintf(stderr, "not so: %s\n", what);
        exit(1);
    }
}

static void print_memory(const uint8_t *bytes, size_t len)
{
    size_t at = 0;
    printf("<");
    for (at = 0; at < len; at++) {
        printf("%02x", (unsigned)bytes[at]);
    }
    printf(">");
}

static inline void print_bytes(const outrigger_bytes_t *v) { print_memory(v->ptr, v->len); }
static inline void print_hash(const outrigger_hash_t *v) { print_memory(v->bytes, sizeof v->bytes); }
static inline void print_bool(const bool *v) { printf("%d", *v ? 1 : 0); }
static inline void print_u8(const uint8_t *v) { printf("%u", (unsigned)*v); }
static inline void print_u16(const uint16_t *v) { printf("%u", (unsigned)*v); }
static inline void print_u32(const uint32_t *v) { printf("%llu", (unsigned long long)*v); }
static inline void print_u64(const uint64_t *v) { printf("%llu", (unsigned long long)*v); }
static inline void print_i32(const int32_t *v) { printf("%lld", (long long)*v); }
static inline void print_i64(const int64_t *v) { printf("%lld", (long long)*v); }

/* The request that is expected next, and what is answered to it. */
static const uint8_t *wanted_bytes = NULL, *answer_bytes = NULL;
static size_t wanted_len = 0, answer_len = 0;
static int32_t answer_status = 0;

static void expect(const uint8_t *bytes, size_t len)
{
    wanted_bytes = bytes;
    wanted_len = len;
}

static void answer(const uint8_t *bytes, size_t len)
{
    answer_bytes = bytes;
    answer_len = len;
    answer_status = 0;
}

static void refuse(void)
{
    answer((const uint8_t *)"no", 2);
    answer_status = OUTRIGGER_STATUS_REFUSED;
}

static int32_t stand_in(const void *ctx, uint64_t scope, outrigger_bytes_t request, outrigger_owned_bytes_t *response)
{
    outrigger_bytes_t given = { answer_bytes, answer_len };
    require(ctx == (const void *)&wanted_bytes && scope == 7, "context and scope");
    require(request.len == wanted_len && (wanted_len == 0 || memcmp(request.ptr, wanted_bytes, wanted_len) == 0),
        "the request's bytes");
    require(outrigger_copy(given, response), "memory");
    return answer_status;
}

/* A table in which all functions but one are missing. */
#define FUNCTIONS 64
static struct {
    outrigger_service_t head;
    outrigger_service_fn_t functions[FUNCTIONS];
} table;

static const outrigger_service_t *service_with(size_t index)
{
    memset(&table, 0, sizeof table);
    require(index < FUNCTIONS, "room in the table");
    table.head.struct_size = sizeof table.head + (index + 1) * sizeof table.functions[0];
    table.head.ctx = (const void *)&wanted_bytes;
    table.functions[index] = stand_in;
    return &table.head;
}

static void without_a_service(void)
{
    outrigger_owned_bytes_t response = OUTRIGGER_NO_BYTES;
    outrigger_tip_t tip;
    require(outrigger_chain_tip(NULL, 0, &response, &tip) == OUTRIGGER_STATUS_NOT_GRANTED, "no service");
    service_with(OUTRIGGER_FN_CHAIN_TIP);
    table.head.struct_size = sizeof table.head;
    require(outrigger_chain_tip(&table.head, 0, &response, &tip) == OUTRIGGER_STATUS_UNSUPPORTED, "a short table");
    table.head.struct_size = sizeof table;
    table.functions[OUTRIGGER_FN_CHAIN_TIP] = NULL;
    require(outrigger_chain_tip(&table.head, 0, &response, &tip) == OUTRIGGER_STATUS_UNSUPPORTED, "no function");
    require(response.len == 0 && response.release == NULL && tip.height == 0, "nothing was written");
}

/* begin hear */
static void hear(const uint8_t *bytes, size_t len, const size_t *older, size_t count)
{
    outrigger_event_t event;
    size_t at = 0;
    for (at = 0; at <= len; at++) {
        bool ends = at == len;
        size_t place = 0;
        /* A copy of just that length, so that a step too far is noticed. */
        outrigger_bytes_t part = { bytes, at };
        outrigger_owned_bytes_t copy = OUTRIGGER_NO_BYTES;
        outrigger_reader_t reader;
        require(outrigger_copy(part, &copy), "memory");
        reader = outrigger_read(outrigger_lend(&copy));
        /* One of an older host ends earlier. */
        for (place = 0; place < count; place++) {
            ends = ends || at == older[place];
        }
        require(outrigger_get_event(&reader, &event) == ends, "an event is read when it is whole");
        if (at == len) {
            /* here the event is printed */
            printf("\n");
        }
        outrigger_release(&copy);
    }
}
/* end hear */
