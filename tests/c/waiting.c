/* Calls that are answered late, from a thread of the plugin's own. */
#include "sample.h"

void room_open(waiting_room *room, const outrigger_host_t *host)
{
    room->host = host;
    pthread_mutex_init(&room->lock, NULL);
    pthread_cond_init(&room->changed, NULL);
}

/* Takes a call that can be answered now out of the room. Called with the lock held. */
static bool take_ready(waiting_room *room, waiting_call *out)
{
    size_t at = 0;
    for (at = 0; at < room->count; at++) {
        if (room->draining || room->calls[at].height <= room->height) {
            *out = room->calls[at];
            room->calls[at] = room->calls[--room->count];
            return true;
        }
    }
    return false;
}

static void *run(void *argument)
{
    waiting_room *room = (waiting_room *)argument;
    waiting_call call;
    pthread_mutex_lock(&room->lock);
    for (;;) {
        if (take_ready(room, &call)) {
            bool reached = call.height <= room->height;
            uint32_t height = room->height;
            /* The host is never called under a lock: it might call back. */
            pthread_mutex_unlock(&room->lock);
            if (reached) {
                outrigger_writer_t json = OUTRIGGER_WRITER;
                outrigger_print(&json, "{\"height\":%u,\"late\":true}", (unsigned)height);
                outrigger_reply_written(room->host, call.token, &json);
            } else {
                outrigger_reply_error(room->host, call.token, OUTRIGGER_CODE_CLIENT_NOT_CONNECTED, "Shutting down");
            }
            pthread_mutex_lock(&room->lock);
        } else if (room->ending) {
            break;
        } else {
            pthread_cond_wait(&room->changed, &room->lock);
        }
    }
    pthread_mutex_unlock(&room->lock);
    return NULL;
}

bool room_start(waiting_room *room)
{
    room->running = pthread_create(&room->thread, NULL, run, room) == 0;
    return room->running;
}

bool room_keep(waiting_room *room, uint64_t token, uint32_t height)
{
    bool kept = false;
    pthread_mutex_lock(&room->lock);
    if (room->count < MAX_WAITING) {
        room->calls[room->count].token = token;
        room->calls[room->count].height = height;
        room->count++;
        kept = true;
        pthread_cond_signal(&room->changed);
    }
    pthread_mutex_unlock(&room->lock);
    return kept;
}

void room_cancel(waiting_room *room, uint64_t token)
{
    size_t at = 0;
    pthread_mutex_lock(&room->lock);
    for (at = 0; at < room->count; at++) {
        if (room->calls[at].token == token) {
            room->calls[at] = room->calls[--room->count];
            room->cancelled++;
            break;
        }
    }
    pthread_mutex_unlock(&room->lock);
}

void room_hear(waiting_room *room, outrigger_bytes_t event)
{
    outrigger_bytes_t tip = outrigger_json_member(event, "tip_changed");
    int64_t height = 0;
    bool has_tip = outrigger_json_integer(outrigger_json_member(tip, "height"), &height);
    pthread_mutex_lock(&room->lock);
    room->events++;
    if (has_tip) {
        room->height = (uint32_t)height;
        pthread_cond_signal(&room->changed);
    } else if (outrigger_is(event, "\"shutting_down\"")) {
        /* The host is stopping: it lets clients have their answers before it goes on to `quiesce`. */
        room->draining = true;
        pthread_cond_signal(&room->changed);
    }
    pthread_mutex_unlock(&room->lock);
}

void room_drain(waiting_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->draining = true;
    pthread_cond_signal(&room->changed);
    pthread_mutex_unlock(&room->lock);
}

void room_end(waiting_room *room)
{
    pthread_mutex_lock(&room->lock);
    room->draining = true;
    room->ending = true;
    pthread_cond_signal(&room->changed);
    pthread_mutex_unlock(&room->lock);
    if (room->running) {
        pthread_join(room->thread, NULL);
        room->running = false;
    }
}

void room_close(waiting_room *room)
{
    pthread_cond_destroy(&room->changed);
    pthread_mutex_destroy(&room->lock);
}
