/* What the parts of the sample plugin share. */
#ifndef SAMPLE_H
#define SAMPLE_H

#include <pthread.h>

#include "outrigger.h"

/* How many calls may wait at a time. */
#define MAX_WAITING 64

/* A call that waits for the chain to reach a height. */
typedef struct waiting_call {
    uint64_t token;
    uint32_t height;
} waiting_call;

/* The calls that wait, and the thread that answers them. */
typedef struct waiting_room {
    const outrigger_host_t *host;
    pthread_t thread;
    /* Guards everything below. */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    waiting_call calls[MAX_WAITING];
    size_t count;
    /* The height of the chain, as the last event told it. */
    uint32_t height;
    bool running, draining, ending;
    /* How many events were heard, and how many waiting calls were cancelled. */
    uint64_t events, cancelled;
} waiting_room;

/* An instance of the plugin. A host may have several at a time, so nothing of it is static. */
typedef struct sample {
    const outrigger_host_t *host;
    /* The option `most_transactions`. */
    int64_t most_transactions;
    waiting_room room;
} sample;

/* Answers a call, or keeps it. */
void answer(sample *self, const outrigger_call_t *call);

/* Logs a line at a level (`warn`). */
int32_t write_log(
    const sample *self, uint64_t scope, const char *level, outrigger_bytes_t line, outrigger_owned_bytes_t *response);

void room_open(waiting_room *room, const outrigger_host_t *host);
bool room_start(waiting_room *room);
/* Keeps a call until the height is reached; false when too many wait. */
bool room_keep(waiting_room *room, uint64_t token, uint32_t height);
void room_cancel(waiting_room *room, uint64_t token);
/* Hears of an event as JSON. */
void room_hear(waiting_room *room, outrigger_bytes_t event);
/* Has all that wait answered; none may be kept any more. */
void room_drain(waiting_room *room);
/* Ends the thread. */
void room_end(waiting_room *room);
void room_close(waiting_room *room);

#endif
