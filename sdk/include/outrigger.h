/*
 * outrigger.h: the plugin interface of Outrigger, version 1.1, for C11 and C++17.
 *
 * Generated from the Rust sources of the SDK by `outrigger plugin header`. Change those, not this file.
 *
 * A plugin is a shared library that exports two symbols: `outrigger_manifest`, which says in JSON what the plugin is (made
 * by OUTRIGGER_MANIFEST), and `outrigger_plugin`, a table of functions (an outrigger_plugin_t that begins with
 * OUTRIGGER_PLUGIN_HEAD). The host reads the manifest without running any of the library's code. Link with nothing but
 * libc; build with
 *
 *     cc -std=c11 -O2 -fPIC -shared -I sdk/include -o liboutrigger_hello.so hello.c
 *
 * sdk/C.md has a whole plugin on one page.
 *
 * Rules that hold everywhere
 *
 * - Versions. The major version of plugin and host must be the same, and the host's minor version at least the one that the
 *   plugin says it needs. Structs only grow at their end: a field that is marked "Since minor N" is read only where the
 *   `struct_size` that the other side wrote covers it (OUTRIGGER_HAS), and a function only where its pointer is not null.
 *   The helpers in this file do both.
 * - Threads. The host calls a plugin from several threads at a time, and a plugin may call the host from any thread, until
 *   `stop` has returned. Every function below says what holds for it. A function that works on its arguments alone may run
 *   on any thread, as long as no other thread uses the same arguments.
 * - Ownership. Memory is freed by the side that allocated it: outrigger_owned_bytes_t carries its own release function.
 * - Lifetimes. An outrigger_bytes_t that is passed to a function is valid until that function returns.
 * - Unwinding. No C++ exception, longjmp or thread exit may cross from the plugin into the host.
 *
 * Messages: how a service's requests and responses, and events, are encoded
 *
 * Integers are little-endian and of fixed width. `bool` is one byte, 0 or 1. `text` is a u32 length and as many bytes of
 * UTF-8, `secret` the same (wipe what you copy of it), `bytes` a u32 length and bytes. `hash` is 32 bytes in internal order,
 * the reverse of how it is printed; `array N` is N bytes. `optional X` is one byte, 0 or 1, and with 1 an X. `list of X` is a
 * u32 count and as many X. `framed X` is a u32 length in bytes and an X that takes as many. A struct is its fields in their
 * order, and a choice one byte (its tag) and the fields of what it names. Transactions, blocks and scripts are in Bitcoin's
 * own serialisation.
 *
 * A newer host may append fields to the end of a message or a frame: what a reader does not know there it leaves unread.
 *
 * For each struct and choice there is a C type, whose members stand in the order of the encoding, each with its encoding in
 * brackets; a function outrigger_get_... reads it, and where it is part of a request outrigger_put_... writes it. What the
 * documentation calls none is an optional whose `present` is false, and as an argument a null pointer.
 */
#ifndef OUTRIGGER_H
#define OUTRIGGER_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if UINTPTR_MAX != UINT64_MAX
#error "the interface is defined for machines with pointers of 64 bits"
#endif

#ifdef __cplusplus
#define OUTRIGGER_STATIC_ASSERT static_assert
#define OUTRIGGER_EXTERN extern "C"
extern "C" {
#else
#define OUTRIGGER_STATIC_ASSERT _Static_assert
#define OUTRIGGER_EXTERN extern
#endif

#if defined(__GNUC__)
#define OUTRIGGER_EXPORT __attribute__((visibility("default")))
#define OUTRIGGER_PRINTF(text, arguments) __attribute__((format(printf, text, arguments)))
#else
#define OUTRIGGER_EXPORT
#define OUTRIGGER_PRINTF(text, arguments)
#endif

/** What the other side relies on. */
#define OUTRIGGER_SIZE_IS(type, size) OUTRIGGER_STATIC_ASSERT(sizeof(type) == (size), #type " has another size")
#define OUTRIGGER_OFFSET_IS(type, member, offset) \
    OUTRIGGER_STATIC_ASSERT(offsetof(type, member) == (offset), #type "." #member " stands elsewhere")

/* ------------------------------------------------------------------------------------------------------------------
 * Versions
 * ------------------------------------------------------------------------------------------------------------------ */

/** The major version of the interface. Host and plugin must have the same. */
#define OUTRIGGER_ABI_MAJOR 1u
/** The minor version of this header: what has been added since the major version began. */
#define OUTRIGGER_ABI_MINOR 1u
/** Begins an outrigger_plugin_t: `OUTRIGPL`. */
#define OUTRIGGER_PLUGIN_MAGIC UINT64_C(0x4c5047495254554f)

/* ------------------------------------------------------------------------------------------------------------------
 * Structs and functions
 * ------------------------------------------------------------------------------------------------------------------ */

/** Bytes that the callee may read until the function returns. */
typedef struct outrigger_bytes_t {
    /** The first byte; may be null when `len` is 0. */
    const uint8_t *ptr;
    /** How many there are. */
    size_t len;
} outrigger_bytes_t;

OUTRIGGER_SIZE_IS(outrigger_bytes_t, 16);
OUTRIGGER_OFFSET_IS(outrigger_bytes_t, ptr, 0);
OUTRIGGER_OFFSET_IS(outrigger_bytes_t, len, 8);

/**
 * Releases owned bytes.
 *
 * Threads: called once, on any thread, also while other functions of the same plugin run.
 * Ownership: gives back `owner` and the bytes that came with it.
 * Lifetime: may be called after the instance that made the bytes was destroyed, so it must not use that instance.
 */
typedef void (*outrigger_release_fn_t)(void *owner);

/**
 * Bytes that the receiver releases, from any thread, with the function that came with them.
 *
 * Nobody writes the bytes once they were handed over.
 */
typedef struct outrigger_owned_bytes_t {
    /** The first byte; may be null when `len` is 0. */
    const uint8_t *ptr;
    /** How many there are. */
    size_t len;
    /** What `release` is called with. */
    void *owner;
    /** Releases the bytes; null when there is nothing to release. */
    outrigger_release_fn_t release;
} outrigger_owned_bytes_t;

OUTRIGGER_SIZE_IS(outrigger_owned_bytes_t, 32);
OUTRIGGER_OFFSET_IS(outrigger_owned_bytes_t, ptr, 0);
OUTRIGGER_OFFSET_IS(outrigger_owned_bytes_t, len, 8);
OUTRIGGER_OFFSET_IS(outrigger_owned_bytes_t, owner, 16);
OUTRIGGER_OFFSET_IS(outrigger_owned_bytes_t, release, 24);

/**
 * A function of a service.
 *
 * `scope` is the token of the call on whose behalf it is asked, or 0. On success the status is 0 and `response` holds
 * the encoded result; otherwise the status is an OUTRIGGER_STATUS_... and `response` holds the detail as UTF-8.
 *
 * Threads: any, from `init` until `stop` has returned; of one scope, one thread at a time. Later the status is
 * OUTRIGGER_STATUS_STALE.
 * Ownership: `request` stays the caller's. `response` is written without being read, and the caller releases it,
 * whatever the status is.
 * Lifetime: `request` is read until the function returns; `response` stays valid until it is released. A scope ends
 * when the `call` function returns for its token.
 */
typedef int32_t (*outrigger_service_fn_t)(
    const void *ctx, uint64_t scope, outrigger_bytes_t request, outrigger_owned_bytes_t *response);

/**
 * The beginning of every service's table; its functions follow, one pointer each, as many as `struct_size` covers.
 *
 * The table stays valid for the life of the process, also when the instance that asked for it has ended.
 */
typedef struct outrigger_service_t {
    /** The bytes of the table, its functions included. */
    size_t struct_size;
    /** To be passed to each function. */
    const void *ctx;
} outrigger_service_t;

OUTRIGGER_SIZE_IS(outrigger_service_t, 16);
OUTRIGGER_OFFSET_IS(outrigger_service_t, struct_size, 0);
OUTRIGGER_OFFSET_IS(outrigger_service_t, ctx, 8);

/**
 * Finds a service by name and revision, as `chain/1`; null when it is unknown or not granted.
 *
 * Threads: any, from `init` until `stop` has returned. Later it is null.
 * Ownership: `name` stays the plugin's, the table the host's.
 * Lifetime: `name` is read until the function returns; the table stays valid for the life of the process.
 */
typedef const outrigger_service_t *(*outrigger_service_lookup_fn_t)(const void *ctx, outrigger_bytes_t name);

/**
 * Answers a call, exactly once: with `code` 0 `body` is the result as one line of JSON, otherwise the error's message
 * as UTF-8.
 *
 * The status is 0, or OUTRIGGER_STATUS_STALE when the call was answered, cancelled or timed out before.
 *
 * Threads: any, while `call` runs and after it, until `stop` has returned. Later the status is OUTRIGGER_STATUS_STALE.
 * Ownership: the host takes `body` in every case, and releases it, from any thread.
 * Lifetime: `body` may be released after `destroy`. The token means nothing once the call was answered.
 */
typedef int32_t (*outrigger_reply_fn_t)(const void *ctx, uint64_t token, int32_t code, outrigger_owned_bytes_t body);

/**
 * Whether a call still waits for its answer: 1 while it does, 0 once it was answered, cancelled or timed out. A call
 * that works for long asks now and then, and stops when nobody waits. Since minor 1.
 *
 * Threads: any, from `init` until `stop` has returned. Later it is 0.
 * Ownership: nothing changes hands.
 * Lifetime: any token may be asked for, also one of a call that is long over.
 */
typedef int32_t (*outrigger_wanted_fn_t)(const void *ctx, uint64_t token);

/**
 * The host, as a plugin sees it.
 *
 * This table, the tables of services and the plugin's library stay where they are for the life of the process. A plugin
 * must end its threads in `stop`, and `outrigger plugin check` names one that calls the host later; but such a call
 * reads no freed memory and changes nothing: it finds no service, and is answered with OUTRIGGER_STATUS_STALE.
 */
typedef struct outrigger_host_t {
    /** The bytes of this struct. */
    size_t struct_size;
    /** The host's major version of the interface. */
    uint32_t abi_major;
    /** The host's minor version. */
    uint32_t abi_minor;
    /** To be passed to each function. */
    const void *ctx;
    /** Finds a service. */
    outrigger_service_lookup_fn_t service;
    /** Answers a call. */
    outrigger_reply_fn_t reply;
    /** Tells whether a call still waits. Since minor 1. */
    outrigger_wanted_fn_t wanted;
} outrigger_host_t;

OUTRIGGER_SIZE_IS(outrigger_host_t, 48);
OUTRIGGER_OFFSET_IS(outrigger_host_t, struct_size, 0);
OUTRIGGER_OFFSET_IS(outrigger_host_t, abi_major, 8);
OUTRIGGER_OFFSET_IS(outrigger_host_t, abi_minor, 12);
OUTRIGGER_OFFSET_IS(outrigger_host_t, ctx, 16);
OUTRIGGER_OFFSET_IS(outrigger_host_t, service, 24);
OUTRIGGER_OFFSET_IS(outrigger_host_t, reply, 32);
OUTRIGGER_OFFSET_IS(outrigger_host_t, wanted, 40);

/** A call, valid until the `call` function returns. */
typedef struct outrigger_call_t {
    /** The bytes of this struct. */
    size_t struct_size;
    /** Names the call: for its reply, and as the scope of services. Never 0. */
    uint64_t token;
    /** The method's name. */
    outrigger_bytes_t method;
    /** Its arguments: a JSON array in the order of the manifest, `null` where one was left out. */
    outrigger_bytes_t params;
    /** When the host answers in the plugin's place, in milliseconds from now; 0 for never. Since minor 1. */
    uint64_t deadline_ms;
} outrigger_call_t;

OUTRIGGER_SIZE_IS(outrigger_call_t, 56);
OUTRIGGER_OFFSET_IS(outrigger_call_t, struct_size, 0);
OUTRIGGER_OFFSET_IS(outrigger_call_t, token, 8);
OUTRIGGER_OFFSET_IS(outrigger_call_t, method, 16);
OUTRIGGER_OFFSET_IS(outrigger_call_t, params, 32);
OUTRIGGER_OFFSET_IS(outrigger_call_t, deadline_ms, 48);

/**
 * Makes an instance; null is a failure.
 *
 * A host may have several instances of one library at a time, as while it reloads a plugin: what an instance keeps
 * belongs into it, and not into static variables.
 *
 * Threads: any; called before every other function, and may not call the host.
 * Ownership: the instance is the plugin's own. The host only passes it on, and gives it back to `destroy`.
 * Lifetime: the instance lives until `destroy`.
 */
typedef void *(*outrigger_create_fn_t)(void);

/**
 * Gives an instance the host and its options, a JSON object in which each option of the manifest is there with its
 * type.
 *
 * A status other than 0 is a refusal, whose reason is written to `error` as UTF-8; `stop` and `destroy` follow it.
 *
 * Threads: one, while no other function of the instance runs. Services may be asked, but calls do not come yet.
 * Ownership: `host` and `options` stay the host's; what is written to `error` becomes the host's.
 * Lifetime: `host` stays valid for the life of the process, `options` until this function returns.
 */
typedef int32_t (*outrigger_init_fn_t)(
    void *instance, const outrigger_host_t *host, outrigger_bytes_t options, outrigger_owned_bytes_t *error);

/**
 * All services are ready: calls follow once this has returned 0. A refusal is told as by `init`.
 *
 * Threads: one, while no other function of the instance runs. The plugin may begin threads of its own here.
 * Ownership: what is written to `error` becomes the host's.
 * Lifetime: `error` can be written until the function returns.
 */
typedef int32_t (*outrigger_start_fn_t)(void *instance, outrigger_owned_bytes_t *error);

/**
 * Runs a call. It may be answered before or after this returns, and is answered once. A status other than 0 is a fault
 * of the plugin, after which the host answers the call if nothing else did.
 *
 * Threads: several at a time, each with a call of its own.
 * Ownership: the frame and what it points to stay the host's.
 * Lifetime: the frame is valid until this function returns: a plugin that answers later copies what it needs. The scope
 * that the token names ends then, too; for the reply the token stays good.
 */
typedef int32_t (*outrigger_call_fn_t)(void *instance, const outrigger_call_t *frame);

/**
 * A call's client is gone or its time is over: an answer will not be read. May come while `call` still runs, and then
 * comes again when `call` has returned without an answer, so that a plugin that keeps tokens cannot miss it.
 *
 * Threads: any, beside `call`, `event` and `quiesce`.
 * Ownership: nothing changes hands.
 * Lifetime: the token need not be answered any more; an answer is refused as stale.
 */
typedef int32_t (*outrigger_cancel_fn_t)(void *instance, uint64_t token);

/**
 * Something happened that the manifest asks to hear of. A status other than 0 is a fault of the plugin.
 *
 * Threads: one of the instance's own, so events come one at a time and in their order, beside everything else.
 * Ownership: the event's bytes stay the host's.
 * Lifetime: the bytes are valid until this function returns.
 */
typedef int32_t (*outrigger_event_fn_t)(void *instance, outrigger_bytes_t event);

/**
 * No call will follow: tokens that are still kept should be answered now. The host answers for what is left after a
 * while.
 *
 * Threads: any, once, while calls, cancels and events may still run.
 * Ownership: nothing changes hands.
 * Lifetime: the host may be called until `stop` has returned.
 */
typedef int32_t (*outrigger_quiesce_fn_t)(void *instance);

/**
 * Ends what the instance has begun: its threads, above all. No function of the host may be called after this has
 * returned.
 *
 * Threads: one, while no other function of the instance runs.
 * Ownership: nothing changes hands.
 * Lifetime: the host's table and the services' tables stay valid for the life of the process. A function of the host
 * that is called later all the same answers OUTRIGGER_STATUS_STALE.
 */
typedef int32_t (*outrigger_stop_fn_t)(void *instance);

/**
 * Frees the instance.
 *
 * Threads: one, once, while no other function of the instance runs; may not call the host.
 * Ownership: gives the instance back.
 * Lifetime: replies whose bytes the host has not released yet outlive the instance.
 */
typedef void (*outrigger_destroy_fn_t)(void *instance);

/**
 * What a plugin exports as `outrigger_plugin`.
 *
 * The host calls, in this order: `create` once, `init` once, `start` once; then `call`, `cancel` and `event` from
 * several threads at a time; then `quiesce`, `stop` and `destroy` once each. `create`, `init`, `start`, `call` and
 * `destroy` must be there; the others may be null.
 */
typedef struct outrigger_plugin_t {
    /** OUTRIGGER_PLUGIN_MAGIC. */
    uint64_t magic;
    /** The bytes of this struct. */
    size_t struct_size;
    /** The major version of the interface it was built for. */
    uint32_t abi_major;
    /** The least minor version of a host that it runs on. */
    uint32_t abi_minor_needed;
    /** The minor version it was built with. */
    uint32_t abi_minor_built;
    /** Zero. */
    uint32_t reserved;
    /** Makes an instance. */
    outrigger_create_fn_t create;
    /** Gives it the host and its options. */
    outrigger_init_fn_t init;
    /** Calls follow. */
    outrigger_start_fn_t start;
    /** Runs a call. */
    outrigger_call_fn_t call;
    /** A call's answer is not wanted any more. */
    outrigger_cancel_fn_t cancel;
    /** Something happened; the bytes are an encoded outrigger_event_t. */
    outrigger_event_fn_t event;
    /** No call will follow. */
    outrigger_quiesce_fn_t quiesce;
    /** The last word to the instance. */
    outrigger_stop_fn_t stop;
    /** Frees the instance. */
    outrigger_destroy_fn_t destroy;
} outrigger_plugin_t;

OUTRIGGER_SIZE_IS(outrigger_plugin_t, 104);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, magic, 0);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, struct_size, 8);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, abi_major, 16);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, abi_minor_needed, 20);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, abi_minor_built, 24);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, reserved, 28);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, create, 32);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, init, 40);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, start, 48);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, call, 56);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, cancel, 64);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, event, 72);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, quiesce, 80);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, stop, 88);
OUTRIGGER_OFFSET_IS(outrigger_plugin_t, destroy, 96);

/* ------------------------------------------------------------------------------------------------------------------
 * Statuses and codes
 * ------------------------------------------------------------------------------------------------------------------ */

/** What functions answer: 0, or which kind of trouble there was. One that is not listed here is a newer host's, and means
 *  as much as OUTRIGGER_STATUS_INTERNAL. */
enum {
    /** Success. */
    OUTRIGGER_STATUS_OK = 0,
    /** The handle's call, wallet or cursor is gone. */
    OUTRIGGER_STATUS_STALE = 1,
    /** The request's bytes are damaged, or a value in them is out of range. */
    OUTRIGGER_STATUS_MALFORMED = 2,
    /** The other side does not have this function. */
    OUTRIGGER_STATUS_UNSUPPORTED = 3,
    /** The configuration does not grant this. */
    OUTRIGGER_STATUS_NOT_GRANTED = 4,
    /** The storage failed; nothing was changed. */
    OUTRIGGER_STATUS_STORAGE = 5,
    /** The request names a thing that does not exist. */
    OUTRIGGER_STATUS_NOT_FOUND = 6,
    /** The rules refuse; the detail says why, in the caller's terms. */
    OUTRIGGER_STATUS_REFUSED = 7,
    /** The named wallet is not loaded. */
    OUTRIGGER_STATUS_WALLET_NOT_LOADED = 8,
    /** No wallet is loaded at all. */
    OUTRIGGER_STATUS_NO_WALLET = 9,
    /** Several wallets are loaded and the call names none. */
    OUTRIGGER_STATUS_WALLET_NOT_SPECIFIED = 10,
    /** The wallet is encrypted and locked. */
    OUTRIGGER_STATUS_WALLET_LOCKED = 11,
    /** A rescan of the wallet is running. */
    OUTRIGGER_STATUS_WALLET_RESCANNING = 12,
    /** The host is stopping. */
    OUTRIGGER_STATUS_SHUTTING_DOWN = 13,
    /** The wallet is loaded already. */
    OUTRIGGER_STATUS_WALLET_ALREADY_LOADED = 14,
    /** A wallet of that name exists. */
    OUTRIGGER_STATUS_WALLET_EXISTS = 15,
    /** The passphrase is wrong. */
    OUTRIGGER_STATUS_PASSPHRASE_INCORRECT = 16,
    /** The wallet is not in the encryption state that the request needs. */
    OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE = 17,
    /** The service failed inside; the details are in the log. */
    OUTRIGGER_STATUS_INTERNAL = 18,
    /** No fresh address can be derived. */
    OUTRIGGER_STATUS_KEYPOOL_RAN_OUT = 19,
    /** The node cannot be reached, or is not ready yet. */
    OUTRIGGER_STATUS_NODE_UNAVAILABLE = 20,
};

/** The codes of JSON-RPC errors, as bitcoind uses them. A plugin may answer with one of its own. */
enum {
    /** An exception in a handler, a wrong JSON type, or a wrong number of arguments. */
    OUTRIGGER_CODE_MISC = -1,
    /** A declared type was not met. */
    OUTRIGGER_CODE_TYPE = -3,
    /** The wallet refuses: state or policy. */
    OUTRIGGER_CODE_WALLET = -4,
    /** A bad key, address or descriptor, or an unknown block or transaction. */
    OUTRIGGER_CODE_INVALID_ADDRESS_OR_KEY = -5,
    /** Not enough funds for the payment. */
    OUTRIGGER_CODE_WALLET_INSUFFICIENT_FUNDS = -6,
    /** Memory could not be had. */
    OUTRIGGER_CODE_OUT_OF_MEMORY = -7,
    /** A value out of its range. */
    OUTRIGGER_CODE_INVALID_PARAMETER = -8,
    /** Not connected, or shutting down. */
    OUTRIGGER_CODE_CLIENT_NOT_CONNECTED = -9,
    /** Still downloading the chain. */
    OUTRIGGER_CODE_CLIENT_IN_INITIAL_DOWNLOAD = -10,
    /** A label that is not allowed. */
    OUTRIGGER_CODE_WALLET_INVALID_LABEL = -11,
    /** No fresh address can be derived. */
    OUTRIGGER_CODE_WALLET_KEYPOOL_RAN_OUT = -12,
    /** The wallet is locked. */
    OUTRIGGER_CODE_WALLET_UNLOCK_NEEDED = -13,
    /** The passphrase is wrong. */
    OUTRIGGER_CODE_WALLET_PASSPHRASE_INCORRECT = -14,
    /** An encryption command that does not fit the wallet's state. */
    OUTRIGGER_CODE_WALLET_WRONG_ENC_STATE = -15,
    /** Encrypting the wallet failed. */
    OUTRIGGER_CODE_WALLET_ENCRYPTION_FAILED = -16,
    /** No such wallet, or none is loaded. */
    OUTRIGGER_CODE_WALLET_NOT_FOUND = -18,
    /** Several wallets are loaded and none was named. */
    OUTRIGGER_CODE_WALLET_NOT_SPECIFIED = -19,
    /** Data in the database is damaged. */
    OUTRIGGER_CODE_DATABASE = -20,
    /** A transaction, block or previous output does not decode. */
    OUTRIGGER_CODE_DESERIALIZATION = -22,
    /** Verification failed. */
    OUTRIGGER_CODE_VERIFY = -25,
    /** Verification refused a transaction or block by its rules. */
    OUTRIGGER_CODE_VERIFY_REJECTED = -26,
    /** The transaction is in the chain already. */
    OUTRIGGER_CODE_VERIFY_ALREADY_IN_CHAIN = -27,
    /** The host is still starting. */
    OUTRIGGER_CODE_IN_WARMUP = -28,
    /** There is no connection manager. */
    OUTRIGGER_CODE_CLIENT_P2P_DISABLED = -31,
    /** There is no mempool. */
    OUTRIGGER_CODE_CLIENT_MEMPOOL_DISABLED = -33,
    /** The wallet is loaded already. */
    OUTRIGGER_CODE_WALLET_ALREADY_LOADED = -35,
    /** A wallet of that name exists already. */
    OUTRIGGER_CODE_WALLET_ALREADY_EXISTS = -36,
    /** Not a request object (HTTP 400). */
    OUTRIGGER_CODE_INVALID_REQUEST = -32600,
    /** Unknown method (HTTP 404). */
    OUTRIGGER_CODE_METHOD_NOT_FOUND = -32601,
    /** Parameters that contradict what is stored. */
    OUTRIGGER_CODE_INVALID_PARAMS = -32602,
    /** The host or a plugin failed inside. */
    OUTRIGGER_CODE_INTERNAL = -32603,
    /** The body is not JSON. */
    OUTRIGGER_CODE_PARSE = -32700,
};

/* ------------------------------------------------------------------------------------------------------------------
 * What a plugin exports
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * The table that a plugin defines, in one of its files:
 *
 *     const outrigger_plugin_t outrigger_plugin = {
 *         OUTRIGGER_PLUGIN_HEAD(0), create, init, start, call, NULL, NULL, NULL, NULL, destroy,
 *     };
 */
OUTRIGGER_EXTERN OUTRIGGER_EXPORT const outrigger_plugin_t outrigger_plugin;

/** The members of an outrigger_plugin_t before its functions. `minor_needed` is the least minor version of a host that the
 *  plugin runs on: 0, unless it cannot do without something newer. */
#define OUTRIGGER_PLUGIN_HEAD(minor_needed) \
    OUTRIGGER_PLUGIN_MAGIC, sizeof(outrigger_plugin_t), OUTRIGGER_ABI_MAJOR, (minor_needed), OUTRIGGER_ABI_MINOR, 0

/** A number as four bytes, little-endian. */
#define OUTRIGGER_LE32(number) \
    (uint8_t)((uint32_t)(number) & 0xff), (uint8_t)((uint32_t)(number) >> 8 & 0xff), \
    (uint8_t)((uint32_t)(number) >> 16 & 0xff), (uint8_t)((uint32_t)(number) >> 24 & 0xff)

/**
 * Defines `outrigger_manifest`, in one of the plugin's files, from the manifest's JSON as a string literal:
 *
 *     OUTRIGGER_MANIFEST(0, "{\"id\": \"hello\", \"version\": \"1.0.0\", ...}");
 *
 * `minor_needed` is the same as in OUTRIGGER_PLUGIN_HEAD. What is defined is 24 bytes and the JSON: the magic
 * `OUTRIGMF`, then major version, minor needed, minor built with and the JSON's length, four bytes each, little-endian.
 */
#define OUTRIGGER_MANIFEST(minor_needed, json) \
    struct outrigger_manifest_t { \
        uint8_t head[24]; \
        char text[sizeof(json)]; \
    }; \
    OUTRIGGER_EXTERN OUTRIGGER_EXPORT const struct outrigger_manifest_t outrigger_manifest; \
    const struct outrigger_manifest_t outrigger_manifest = { \
        { 'O', 'U', 'T', 'R', 'I', 'G', 'M', 'F', OUTRIGGER_LE32(OUTRIGGER_ABI_MAJOR), \
          OUTRIGGER_LE32(minor_needed), OUTRIGGER_LE32(OUTRIGGER_ABI_MINOR), OUTRIGGER_LE32(sizeof(json) - 1) }, \
        json, \
    }

/** Whether the other side's struct reaches so far that `member` can be read. `type` is the struct's type. */
#define OUTRIGGER_HAS(type, pointer, member) \
    ((pointer)->struct_size >= offsetof(type, member) + sizeof(((const type *)0)->member))

/* ------------------------------------------------------------------------------------------------------------------
 * Bytes
 * ------------------------------------------------------------------------------------------------------------------ */

/** Bytes that are nobody's: what an outrigger_owned_bytes_t begins with. */
#define OUTRIGGER_NO_BYTES { NULL, 0, NULL, NULL }

/**
 * A C string as bytes, without its terminating zero.
 *
 * Threads: any. Ownership: stays the caller's. Lifetime: that of `text`.
 */
static inline outrigger_bytes_t outrigger_text(const char *text)
{
    outrigger_bytes_t bytes;
    bytes.ptr = (const uint8_t *)text;
    bytes.len = strlen(text);
    return bytes;
}

/**
 * Whether bytes are those of a C string.
 *
 * Threads: any. Ownership: both stay the caller's. Lifetime: nothing is kept.
 */
static inline bool outrigger_is(outrigger_bytes_t bytes, const char *text)
{
    return bytes.len == strlen(text) && (bytes.len == 0 || memcmp(bytes.ptr, text, bytes.len) == 0);
}

/**
 * Owned bytes, lent.
 *
 * Threads: any. Ownership: stays where it was. Lifetime: until the owned bytes are released.
 */
static inline outrigger_bytes_t outrigger_lend(const outrigger_owned_bytes_t *owned)
{
    outrigger_bytes_t bytes;
    bytes.ptr = owned->ptr;
    bytes.len = owned->len;
    return bytes;
}

/**
 * Releases owned bytes, and leaves none. May be called again, and with OUTRIGGER_NO_BYTES.
 *
 * Threads: any. Ownership: given back to whoever made the bytes. Lifetime: everything that was read from them ends.
 */
static inline void outrigger_release(outrigger_owned_bytes_t *owned)
{
    if (owned->release != NULL) {
        owned->release(owned->owner);
    }
    memset(owned, 0, sizeof *owned);
}

/**
 * Frees memory that came from malloc: the release function of what this file makes.
 *
 * Threads: any. Ownership: of `memory` is given back. Lifetime: that of the process; needs no instance.
 */
static inline void outrigger_free_memory(void *memory)
{
    free(memory);
}

/**
 * Owned bytes that are a copy of others. False when there is no memory; `*owned` is OUTRIGGER_NO_BYTES then.
 *
 * Threads: any. Ownership: `*owned` is the caller's, to release or to hand over. Lifetime: until it is released.
 */
static inline bool outrigger_copy(outrigger_bytes_t bytes, outrigger_owned_bytes_t *owned)
{
    uint8_t *memory = NULL;
    memset(owned, 0, sizeof *owned);
    if (bytes.len == 0) {
        return true;
    }
    memory = (uint8_t *)malloc(bytes.len);
    if (memory == NULL) {
        return false;
    }
    memcpy(memory, bytes.ptr, bytes.len);
    owned->ptr = memory;
    owned->len = bytes.len;
    owned->owner = memory;
    owned->release = outrigger_free_memory;
    return true;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Reading messages
 *
 * A reader goes through bytes and never beyond them. Once it has met damage it stays failed, and each further read fails
 * too, so that one look at the last result is enough. What could not be read is zero.
 * ------------------------------------------------------------------------------------------------------------------ */

/** Goes through a message. */
typedef struct outrigger_reader_t {
    /** What is read next. */
    const uint8_t *at;
    /** The bytes from there to the end. */
    size_t left;
    /** Whether the message was damaged. */
    bool failed;
} outrigger_reader_t;

/** A list in a message. Its items are read with the outrigger_get_... function of their type, `count` times, from `items`. */
typedef struct outrigger_list_t {
    /** How many items there are. */
    uint32_t count;
    /** Stands before the first item. */
    outrigger_reader_t items;
} outrigger_list_t;

/** A hash, in internal order: the reverse of how it is printed. */
typedef struct outrigger_hash_t {
    /** Its bytes. */
    uint8_t bytes[32];
} outrigger_hash_t;

/**
 * A reader of bytes.
 *
 * Threads: any. Ownership: the bytes stay the caller's. Lifetime: that of the bytes, also for what is read.
 */
static inline outrigger_reader_t outrigger_read(outrigger_bytes_t bytes)
{
    outrigger_reader_t reader;
    reader.at = bytes.ptr;
    reader.left = bytes.len;
    reader.failed = false;
    return reader;
}

/**
 * Marks a reader as failed. False.
 *
 * Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline bool outrigger_fail(outrigger_reader_t *reader)
{
    reader->failed = true;
    reader->left = 0;
    return false;
}

/**
 * The next `len` bytes.
 *
 * Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_take(outrigger_reader_t *reader, size_t len, const uint8_t **out)
{
    *out = NULL;
    if (reader->failed || reader->left < len) {
        return outrigger_fail(reader);
    }
    *out = reader->at;
    if (len > 0) {
        reader->at += len;
        reader->left -= len;
    }
    return true;
}

/**
 * Goes on behind the next `len` bytes.
 *
 * Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline bool outrigger_skip(outrigger_reader_t *reader, size_t len)
{
    const uint8_t *skipped = NULL;
    return outrigger_take(reader, len, &skipped);
}

/**
 * An unsigned integer of `width` bytes, at most eight.
 *
 * Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy.
 */
static inline bool outrigger_get_unsigned(outrigger_reader_t *reader, size_t width, uint64_t *out)
{
    const uint8_t *bytes = NULL;
    size_t at = 0;
    *out = 0;
    if (!outrigger_take(reader, width, &bytes)) {
        return false;
    }
    for (at = 0; at < width; at++) {
        *out |= (uint64_t)bytes[at] << (8 * at);
    }
    return true;
}

/** [u8] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_u8(outrigger_reader_t *reader, uint8_t *out)
{
    uint64_t number = 0;
    bool good = outrigger_get_unsigned(reader, 1, &number);
    *out = (uint8_t)number;
    return good;
}

/** [u16] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_u16(outrigger_reader_t *reader, uint16_t *out)
{
    uint64_t number = 0;
    bool good = outrigger_get_unsigned(reader, 2, &number);
    *out = (uint16_t)number;
    return good;
}

/** [u32] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_u32(outrigger_reader_t *reader, uint32_t *out)
{
    uint64_t number = 0;
    bool good = outrigger_get_unsigned(reader, 4, &number);
    *out = (uint32_t)number;
    return good;
}

/** [u64] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_u64(outrigger_reader_t *reader, uint64_t *out)
{
    return outrigger_get_unsigned(reader, 8, out);
}

/** [i32] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_i32(outrigger_reader_t *reader, int32_t *out)
{
    uint32_t number = 0;
    bool good = outrigger_get_u32(reader, &number);
    memcpy(out, &number, sizeof *out);
    return good;
}

/** [i64] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_i64(outrigger_reader_t *reader, int64_t *out)
{
    uint64_t number = 0;
    bool good = outrigger_get_u64(reader, &number);
    memcpy(out, &number, sizeof *out);
    return good;
}

/** [bool] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_bool(outrigger_reader_t *reader, bool *out)
{
    uint8_t byte = 0;
    *out = false;
    if (!outrigger_get_u8(reader, &byte) || byte > 1) {
        return outrigger_fail(reader);
    }
    *out = byte == 1;
    return true;
}

/**
 * So many bytes, copied.
 *
 * Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy.
 */
static inline bool outrigger_get_fixed(outrigger_reader_t *reader, uint8_t *out, size_t len)
{
    const uint8_t *bytes = NULL;
    if (!outrigger_take(reader, len, &bytes)) {
        memset(out, 0, len);
        return false;
    }
    memcpy(out, bytes, len);
    return true;
}

/** [hash] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_hash(outrigger_reader_t *reader, outrigger_hash_t *out)
{
    return outrigger_get_fixed(reader, out->bytes, sizeof out->bytes);
}

/** [bytes, text or secret] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_bytes(outrigger_reader_t *reader, outrigger_bytes_t *out)
{
    uint32_t len = 0;
    out->ptr = NULL;
    out->len = 0;
    if (!outrigger_get_u32(reader, &len) || !outrigger_take(reader, len, &out->ptr)) {
        return false;
    }
    out->len = len;
    return true;
}

/** Goes on behind [bytes]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_bytes(outrigger_reader_t *reader)
{
    outrigger_bytes_t skipped;
    return outrigger_get_bytes(reader, &skipped);
}

/**
 * Begins to read a list: its count, with `items` reaching to the end of the message.
 *
 * Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_begin_list(outrigger_reader_t *reader, outrigger_list_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u32(reader, &out->count)) {
        return false;
    }
    out->items = *reader;
    return true;
}

/**
 * Ends `items` where the reader has come to.
 *
 * Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_end_list(const outrigger_reader_t *reader, outrigger_list_t *out)
{
    if (reader->failed) {
        memset(out, 0, sizeof *out);
        return false;
    }
    out->items.left -= reader->left;
    return true;
}

/**
 * A list of items that take `size` bytes each.
 *
 * Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_fixed(outrigger_reader_t *reader, size_t size, outrigger_list_t *out)
{
    outrigger_begin_list(reader, out);
    outrigger_skip(reader, size * out->count);
    return outrigger_end_list(reader, out);
}

/* ------------------------------------------------------------------------------------------------------------------
 * Writing
 *
 * A writer holds bytes in memory from malloc, which grows as needed: a request, an answer, or any text. Where there is no
 * memory left it becomes failed and takes nothing more, so that one look at the end is enough.
 * ------------------------------------------------------------------------------------------------------------------ */

/** Holds what was written. */
typedef struct outrigger_writer_t {
    /** The first byte; null while nothing was written. */
    uint8_t *bytes;
    /** How many there are. */
    size_t len;
    /** How many there is room for. */
    size_t capacity;
    /** Whether memory that is given back is wiped first. */
    bool secret;
    /** Whether something could not be written. */
    bool failed;
} outrigger_writer_t;

/** A writer that holds nothing, and one that wipes what it leaves behind. */
#define OUTRIGGER_WRITER { NULL, 0, 0, false, false }
#define OUTRIGGER_SECRET_WRITER { NULL, 0, 0, true, false }

/**
 * Overwrites memory, also where the compiler sees that nobody reads it any more.
 *
 * Threads: any. Ownership: `memory` stays the caller's. Lifetime: nothing is kept.
 */
static inline void outrigger_wipe(void *memory, size_t len)
{
    volatile uint8_t *bytes = (volatile uint8_t *)memory;
    size_t at = 0;
    for (at = 0; at < len; at++) {
        bytes[at] = 0;
    }
}

/**
 * Gives back what a writer holds, and leaves it empty.
 *
 * Threads: any. Ownership: of the writer's memory is given back. Lifetime: what was lent from it ends.
 */
static inline void outrigger_writer_free(outrigger_writer_t *writer)
{
    if (writer->secret && writer->bytes != NULL) {
        outrigger_wipe(writer->bytes, writer->capacity);
    }
    free(writer->bytes);
    writer->bytes = NULL;
    writer->len = 0;
    writer->capacity = 0;
    writer->failed = false;
}

/**
 * What was written, lent.
 *
 * Threads: any. Ownership: stays the writer's. Lifetime: until the writer is written to or freed.
 */
static inline outrigger_bytes_t outrigger_written(const outrigger_writer_t *writer)
{
    outrigger_bytes_t bytes;
    bytes.ptr = writer->bytes;
    bytes.len = writer->len;
    return bytes;
}

/**
 * Makes room for `more` bytes. False when there is none.
 *
 * Threads: any. Ownership: the writer owns its memory. Lifetime: what was lent from the writer ends.
 */
static inline bool outrigger_reserve(outrigger_writer_t *writer, size_t more)
{
    size_t capacity = writer->capacity < 32 ? 64 : writer->capacity * 2;
    uint8_t *bytes = NULL;
    if (writer->failed || more > SIZE_MAX / 4 - writer->len) {
        writer->failed = true;
        return false;
    }
    if (writer->len + more <= writer->capacity) {
        return true;
    }
    if (capacity < writer->len + more) {
        capacity = writer->len + more;
    }
    bytes = (uint8_t *)malloc(capacity);
    if (bytes == NULL) {
        writer->failed = true;
        return false;
    }
    if (writer->len > 0) {
        memcpy(bytes, writer->bytes, writer->len);
    }
    if (writer->secret && writer->bytes != NULL) {
        outrigger_wipe(writer->bytes, writer->capacity);
    }
    free(writer->bytes);
    writer->bytes = bytes;
    writer->capacity = capacity;
    return true;
}

/**
 * Appends bytes as they are.
 *
 * Threads: any. Ownership: `bytes` stays the caller's. Lifetime: they are copied.
 */
static inline void outrigger_append(outrigger_writer_t *writer, const void *bytes, size_t len)
{
    if (len > 0 && outrigger_reserve(writer, len)) {
        memcpy(writer->bytes + writer->len, bytes, len);
        writer->len += len;
    }
}

/**
 * Appends an unsigned integer of `width` bytes, at most eight.
 *
 * Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline void outrigger_put_unsigned(outrigger_writer_t *writer, size_t width, uint64_t value)
{
    uint8_t bytes[8];
    size_t at = 0;
    for (at = 0; at < sizeof bytes; at++) {
        bytes[at] = (uint8_t)(value >> (8 * at) & 0xff);
    }
    outrigger_append(writer, bytes, width);
}

/** [u8] Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_u8(outrigger_writer_t *writer, uint8_t value)
{
    outrigger_put_unsigned(writer, 1, value);
}

/** [u16] Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_u16(outrigger_writer_t *writer, uint16_t value)
{
    outrigger_put_unsigned(writer, 2, value);
}

/** [u32] Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_u32(outrigger_writer_t *writer, uint32_t value)
{
    outrigger_put_unsigned(writer, 4, value);
}

/** [u64] Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_u64(outrigger_writer_t *writer, uint64_t value)
{
    outrigger_put_unsigned(writer, 8, value);
}

/** [i32] Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_i32(outrigger_writer_t *writer, int32_t value)
{
    outrigger_put_unsigned(writer, 4, (uint32_t)value);
}

/** [i64] Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_i64(outrigger_writer_t *writer, int64_t value)
{
    outrigger_put_unsigned(writer, 8, (uint64_t)value);
}

/** [bool] Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_bool(outrigger_writer_t *writer, bool value)
{
    outrigger_put_unsigned(writer, 1, value ? 1 : 0);
}

/** [hash] Threads: any. Ownership: `*value` stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_hash(outrigger_writer_t *writer, const outrigger_hash_t *value)
{
    outrigger_append(writer, value->bytes, sizeof value->bytes);
}

/** The count of a list or the length of bytes. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline void outrigger_put_count(outrigger_writer_t *writer, size_t count)
{
    if (count > UINT32_MAX) {
        writer->failed = true;
    }
    outrigger_put_unsigned(writer, 4, count);
}

/** [bytes, text or secret] Threads: any. Ownership: `value` stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_bytes(outrigger_writer_t *writer, outrigger_bytes_t value)
{
    outrigger_put_count(writer, value.len);
    outrigger_append(writer, value.ptr, value.len);
}

/** A list as it was read. Threads: any. Ownership: `*value` stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list(outrigger_writer_t *writer, const outrigger_list_t *value)
{
    outrigger_put_count(writer, value->count);
    outrigger_append(writer, value->items.at, value->items.left);
}

/* ------------------------------------------------------------------------------------------------------------------
 * JSON: arguments and answers
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * Appends text as printf makes it. The text of clients belongs into outrigger_print_json_text(), which quotes it.
 *
 * Threads: any. Ownership: the arguments stay the caller's. Lifetime: they are copied.
 */
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

/**
 * Appends bytes as hexadecimal digits.
 *
 * Threads: any. Ownership: `bytes` stays the caller's. Lifetime: they are copied.
 */
static inline void outrigger_print_hex(outrigger_writer_t *writer, outrigger_bytes_t bytes)
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;
    for (at = 0; at < bytes.len; at++) {
        outrigger_append(writer, &digits[bytes.ptr[at] >> 4], 1);
        outrigger_append(writer, &digits[bytes.ptr[at] & 15], 1);
    }
}

/**
 * Appends a hash as it is printed: 64 hexadecimal digits, the last byte first.
 *
 * Threads: any. Ownership: `*hash` stays the caller's. Lifetime: it is copied.
 */
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

/**
 * Appends UTF-8 as a JSON string, with its quotes.
 *
 * Threads: any. Ownership: `text` stays the caller's. Lifetime: it is copied.
 */
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
 *
 * Threads: any. Ownership: `json` stays the caller's. Lifetime: nothing is kept.
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

/**
 * JSON without the white space around it.
 *
 * Threads: any. Ownership: `json` stays the caller's. Lifetime: of the result, that of `json`.
 */
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

/**
 * The argument of a call at a position, as JSON; no bytes where it was left out or is null.
 *
 * Threads: any. Ownership: stays the host's. Lifetime: until the `call` function returns.
 */
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

/**
 * The length of the JSON string at the beginning of `json`, with its quotes. `json` is known to be JSON.
 *
 * Threads: any. Ownership: `json` stays the caller's. Lifetime: nothing is kept.
 */
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
 *
 * Threads: any. Ownership: `json` stays the caller's. Lifetime: of the result, that of `json`.
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

/**
 * A JSON number that is whole and written without fraction or exponent. False for anything else.
 *
 * Threads: any. Ownership: `json` stays the caller's. Lifetime: `*out` is a copy.
 */
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

/**
 * `true` or `false`. False for anything else.
 *
 * Threads: any. Ownership: `json` stays the caller's. Lifetime: `*out` is a copy.
 */
static inline bool outrigger_json_bool(outrigger_bytes_t json, bool *out)
{
    *out = outrigger_is(json, "true");
    return *out || outrigger_is(json, "false");
}

/**
 * The value of a hexadecimal digit; 16 for anything else.
 *
 * Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
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

/**
 * Reads `u` and four hexadecimal digits at the beginning of `escape`.
 *
 * Threads: any. Ownership: `escape` stays the caller's. Lifetime: `*out` is a copy.
 */
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

/**
 * The character that stands behind a backslash. How many bytes it takes there, or 0 when it is none.
 *
 * Threads: any. Ownership: `escape` stays the caller's. Lifetime: `*out` is a copy.
 */
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

/**
 * Appends a character as UTF-8.
 *
 * Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
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

/**
 * Appends the UTF-8 of a JSON string. False for anything else, with nothing useful appended.
 *
 * Threads: any. Ownership: `json` stays the caller's. Lifetime: it is copied.
 */
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

/**
 * A hash from its 64 hexadecimal digits, as it is printed. False for anything else.
 *
 * Threads: any. Ownership: `digits` stays the caller's. Lifetime: `*out` is a copy.
 */
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

/* ------------------------------------------------------------------------------------------------------------------
 * The host
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * A service by its name and revision (OUTRIGGER_SERVICE_...); null when it is not granted. To be asked for in `init`.
 *
 * Threads: any, from `init` until `stop` has returned.
 * Ownership: the table stays the host's.
 * Lifetime: the table stays valid for the life of the process; calls after `destroy` are refused.
 */
static inline const outrigger_service_t *outrigger_find_service(const outrigger_host_t *host, const char *name)
{
    return host->service(host->ctx, outrigger_text(name));
}

/**
 * Answers a call with bytes that the host takes over: with `code` 0 one line of JSON, else the message of an error.
 *
 * Threads: any, until `stop` has returned.
 * Ownership: the host takes what `*body` holds, in every case, and leaves it OUTRIGGER_NO_BYTES.
 * Lifetime: the bytes may be released after `destroy`.
 */
static inline int32_t outrigger_reply(
    const outrigger_host_t *host, uint64_t token, int32_t code, outrigger_owned_bytes_t *body)
{
    outrigger_owned_bytes_t given = *body;
    memset(body, 0, sizeof *body);
    return host->reply(host->ctx, token, code, given);
}

/**
 * Answers a call with an error: one of OUTRIGGER_CODE_..., or a code of the plugin's own, which must not be 0.
 *
 * Threads: any, until `stop` has returned.
 * Ownership: `message` stays the caller's; it is copied.
 * Lifetime: nothing is kept.
 */
static inline int32_t outrigger_reply_error(
    const outrigger_host_t *host, uint64_t token, int32_t code, const char *message)
{
    outrigger_owned_bytes_t body = OUTRIGGER_NO_BYTES;
    if (!outrigger_copy(outrigger_text(message), &body)) {
        outrigger_bytes_t reason = outrigger_text("Out of memory");
        code = OUTRIGGER_CODE_OUT_OF_MEMORY;
        body.ptr = reason.ptr;
        body.len = reason.len;
    }
    return outrigger_reply(host, token, code == 0 ? OUTRIGGER_CODE_MISC : code, &body);
}

/**
 * Answers a call with a result: one line of JSON.
 *
 * Threads: any, until `stop` has returned.
 * Ownership: `json` stays the caller's; it is copied.
 * Lifetime: nothing is kept.
 */
static inline int32_t outrigger_reply_json(const outrigger_host_t *host, uint64_t token, outrigger_bytes_t json)
{
    outrigger_owned_bytes_t body = OUTRIGGER_NO_BYTES;
    if (!outrigger_copy(json, &body)) {
        return outrigger_reply_error(host, token, OUTRIGGER_CODE_OUT_OF_MEMORY, "Out of memory");
    }
    return outrigger_reply(host, token, 0, &body);
}

/**
 * Answers a call with the result that was written: one line of JSON, which is not copied. A writer that is failed is
 * answered with an error instead; one that was made to be wiped is not, once the host has it.
 *
 * Threads: any, until `stop` has returned.
 * Ownership: the host takes what the writer holds, in every case, and leaves it empty.
 * Lifetime: the bytes may be released after `destroy`.
 */
static inline int32_t outrigger_reply_written(const outrigger_host_t *host, uint64_t token, outrigger_writer_t *json)
{
    outrigger_owned_bytes_t body = OUTRIGGER_NO_BYTES;
    if (json->failed) {
        outrigger_writer_free(json);
        return outrigger_reply_error(host, token, OUTRIGGER_CODE_OUT_OF_MEMORY, "Out of memory");
    }
    body.ptr = json->bytes;
    body.len = json->len;
    body.owner = json->bytes;
    body.release = outrigger_free_memory;
    memset(json, 0, sizeof *json);
    return outrigger_reply(host, token, 0, &body);
}

/**
 * Answers a call with the error that bitcoind would give for a service's status: its code, and the service's detail where it
 * has one, else bitcoind's words.
 *
 * Threads: any, until `stop` has returned.
 * Ownership: what `*detail` holds is released; it is the response of the service, and may be null.
 * Lifetime: nothing is kept.
 */
static inline int32_t outrigger_reply_failure(
    const outrigger_host_t *host, uint64_t token, int32_t status, outrigger_owned_bytes_t *detail)
{
    int32_t code = OUTRIGGER_CODE_INTERNAL;
    const char *message = "Internal error";
    bool fixed = false;
    switch (status) {
    case OUTRIGGER_STATUS_STALE:
        code = OUTRIGGER_CODE_INTERNAL;
        message = "Internal error";
        break;
    case OUTRIGGER_STATUS_MALFORMED:
        code = OUTRIGGER_CODE_INTERNAL;
        message = "Internal error";
        break;
    case OUTRIGGER_STATUS_UNSUPPORTED:
        code = OUTRIGGER_CODE_INTERNAL;
        message = "Internal error";
        break;
    case OUTRIGGER_STATUS_NOT_GRANTED:
        code = OUTRIGGER_CODE_INTERNAL;
        message = "The plugin lacks the grant for this service";
        break;
    case OUTRIGGER_STATUS_STORAGE:
        code = OUTRIGGER_CODE_DATABASE;
        message = "The storage failed; nothing was changed";
        break;
    case OUTRIGGER_STATUS_NOT_FOUND:
        code = OUTRIGGER_CODE_INVALID_ADDRESS_OR_KEY;
        message = "Not found";
        break;
    case OUTRIGGER_STATUS_REFUSED:
        code = OUTRIGGER_CODE_WALLET;
        message = "";
        break;
    case OUTRIGGER_STATUS_WALLET_NOT_LOADED:
        code = OUTRIGGER_CODE_WALLET_NOT_FOUND;
        message = "Requested wallet does not exist or is not loaded";
        break;
    case OUTRIGGER_STATUS_NO_WALLET:
        code = OUTRIGGER_CODE_WALLET_NOT_FOUND;
        message = "No wallet is loaded. Load a wallet using loadwallet or create a new one with createwallet. (Note: A default wallet is no longer automatically created)";
        fixed = true;
        break;
    case OUTRIGGER_STATUS_WALLET_NOT_SPECIFIED:
        code = OUTRIGGER_CODE_WALLET_NOT_SPECIFIED;
        message = "Multiple wallets are loaded. Please select which wallet to use by requesting the RPC through the /wallet/<walletname> URI path.";
        fixed = true;
        break;
    case OUTRIGGER_STATUS_WALLET_LOCKED:
        code = OUTRIGGER_CODE_WALLET_UNLOCK_NEEDED;
        message = "Error: Please enter the wallet passphrase with walletpassphrase first.";
        fixed = true;
        break;
    case OUTRIGGER_STATUS_WALLET_RESCANNING:
        code = OUTRIGGER_CODE_WALLET;
        message = "Wallet is currently rescanning. Abort existing rescan or wait.";
        fixed = true;
        break;
    case OUTRIGGER_STATUS_SHUTTING_DOWN:
        code = OUTRIGGER_CODE_CLIENT_NOT_CONNECTED;
        message = "Shutting down";
        fixed = true;
        break;
    case OUTRIGGER_STATUS_WALLET_ALREADY_LOADED:
        code = OUTRIGGER_CODE_WALLET_ALREADY_LOADED;
        message = "";
        break;
    case OUTRIGGER_STATUS_WALLET_EXISTS:
        code = OUTRIGGER_CODE_WALLET;
        message = "";
        break;
    case OUTRIGGER_STATUS_PASSPHRASE_INCORRECT:
        code = OUTRIGGER_CODE_WALLET_PASSPHRASE_INCORRECT;
        message = "Error: The wallet passphrase entered was incorrect.";
        break;
    case OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE:
        code = OUTRIGGER_CODE_WALLET_WRONG_ENC_STATE;
        message = "";
        break;
    case OUTRIGGER_STATUS_INTERNAL:
        code = OUTRIGGER_CODE_INTERNAL;
        message = "Internal error";
        break;
    case OUTRIGGER_STATUS_KEYPOOL_RAN_OUT:
        code = OUTRIGGER_CODE_WALLET_KEYPOOL_RAN_OUT;
        message = "Error: Keypool ran out, please call keypoolrefill first";
        break;
    case OUTRIGGER_STATUS_NODE_UNAVAILABLE:
        code = OUTRIGGER_CODE_IN_WARMUP;
        message = "The node cannot be reached";
        break;
    default:
        break;
    }
    if (detail != NULL && detail->len > 0 && !fixed) {
        outrigger_owned_bytes_t body = *detail;
        memset(detail, 0, sizeof *detail);
        return outrigger_reply(host, token, code, &body);
    }
    if (detail != NULL) {
        outrigger_release(detail);
    }
    return outrigger_reply_error(host, token, code, message);
}

/**
 * Asks a function of a service by its index (OUTRIGGER_FN_...), with an encoded request. OUTRIGGER_STATUS_NOT_GRANTED when
 * `service` is null, OUTRIGGER_STATUS_UNSUPPORTED when its table has no such function.
 *
 * Threads: any, until `stop` has returned; of one scope, one thread at a time.
 * Ownership: `request` stays the caller's; `*response` is the caller's, to release whatever the status is.
 * Lifetime: of `*response`, until it is released.
 */
static inline int32_t outrigger_ask(const outrigger_service_t *service, size_t index, uint64_t scope,
    outrigger_bytes_t request, outrigger_owned_bytes_t *response)
{
    const outrigger_service_fn_t *functions = NULL;
    memset(response, 0, sizeof *response);
    if (service == NULL) {
        return OUTRIGGER_STATUS_NOT_GRANTED;
    }
    if (service->struct_size < sizeof *service + (index + 1) * sizeof *functions) {
        return OUTRIGGER_STATUS_UNSUPPORTED;
    }
    functions = (const outrigger_service_fn_t *)(const void *)(service + 1);
    if (functions[index] == NULL) {
        return OUTRIGGER_STATUS_UNSUPPORTED;
    }
    return functions[index](service->ctx, scope, request, response);
}

/**
 * Asks as outrigger_ask() does, with what was written; OUTRIGGER_STATUS_INTERNAL when it could not be.
 *
 * Threads: any, until `stop` has returned; of one scope, one thread at a time.
 * Ownership: what the writer holds is given back; `*response` is the caller's, to release whatever the status is.
 * Lifetime: of `*response`, until it is released.
 */
static inline int32_t outrigger_ask_written(const outrigger_service_t *service, size_t index, uint64_t scope,
    outrigger_writer_t *request, outrigger_owned_bytes_t *response)
{
    int32_t status = OUTRIGGER_STATUS_INTERNAL;
    if (request->failed) {
        memset(response, 0, sizeof *response);
    } else {
        status = outrigger_ask(service, index, scope, outrigger_written(request), response);
    }
    outrigger_writer_free(request);
    return status;
}

/**
 * Ends a question to a service: a response that could not be read is released and counts as OUTRIGGER_STATUS_MALFORMED.
 *
 * Threads: any. Ownership: what `*own` holds goes to `*response`; where that is null, it is released. Lifetime: of
 * `*response`, until it is released.
 */
static inline int32_t outrigger_answered(
    int32_t status, bool read, outrigger_owned_bytes_t *own, outrigger_owned_bytes_t *response)
{
    if (status == OUTRIGGER_STATUS_OK && !read) {
        status = OUTRIGGER_STATUS_MALFORMED;
        outrigger_release(own);
    }
    if (response != NULL) {
        *response = *own;
    } else {
        outrigger_release(own);
    }
    return status;
}

/**
 * Whether a call still waits for its answer. A call that works for long asks now and then, and stops when nobody waits. On a
 * host of minor 0, which cannot tell, it always does. Since minor 1.
 *
 * Threads: any, from `init` until `stop` has returned.
 * Ownership: nothing changes hands.
 * Lifetime: any token may be asked for, also one of a call that is long over.
 */
static inline bool outrigger_is_wanted(const outrigger_host_t *host, uint64_t token)
{
    return !OUTRIGGER_HAS(outrigger_host_t, host, wanted) || host->wanted(host->ctx, token) != 0;
}

/**
 * When the host answers a call in the plugin's place, in milliseconds from now; 0 for never, or where the host does not say.
 * Since minor 1.
 *
 * Threads: any, while `call` runs.
 * Ownership: the frame stays the host's.
 * Lifetime: until the `call` function returns.
 */
static inline uint64_t outrigger_deadline_ms(const outrigger_call_t *call)
{
    return OUTRIGGER_HAS(outrigger_call_t, call, deadline_ms) ? call->deadline_ms : 0;
}

/* ------------------------------------------------------------------------------------------------------------------
 * Messages
 * ------------------------------------------------------------------------------------------------------------------ */

/** The block at the end of the best chain. */
typedef struct outrigger_tip_t {
    /** Its hash. [hash] */
    outrigger_hash_t hash;
    /** Its height; the genesis block has 0. [u32] */
    uint32_t height;
    /** The time in its header, in seconds. [u32] */
    uint32_t time;
    /** The median time of it and its ten predecessors (BIP 113), in seconds. [u32] */
    uint32_t median_time;
} outrigger_tip_t;

/** Perhaps a value. [optional u64] */
typedef struct outrigger_optional_u64_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    uint64_t value;
} outrigger_optional_u64_t;

/** Which chain this is and where it stands. */
typedef struct outrigger_chain_info_t {
    /** The network that the node is on. [text] */
    outrigger_bytes_t network;
    /** The best block. [tip] */
    outrigger_tip_t tip;
    /** The height of the best known header. [u32] */
    uint32_t headers;
    /** The bytes the chain takes on disk; none where the node does not tell. [optional u64] */
    outrigger_optional_u64_t size_on_disk;
    /** The number of unspent outputs; none where the node does not tell. [optional u64] */
    outrigger_optional_u64_t coins;
    /** What an operator has to know: that the chain's file was found to be damaged. Since minor 1. [list of text] */
    outrigger_list_t warnings;
} outrigger_chain_info_t;

/** 80 bytes. [array 80] */
typedef struct outrigger_array80_t {
    /** They. */
    uint8_t bytes[80];
} outrigger_array80_t;

/** 32 bytes. [array 32] */
typedef struct outrigger_array32_t {
    /** They. */
    uint8_t bytes[32];
} outrigger_array32_t;

/** Perhaps a value. [optional u32] */
typedef struct outrigger_optional_u32_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    uint32_t value;
} outrigger_optional_u32_t;

/** How far a block has been checked. */
typedef uint8_t outrigger_block_state_t;

/** What an outrigger_block_state_t can be. */
enum {
    /** Only its header is known (`headers-only`). */
    OUTRIGGER_BLOCK_STATE_HEADER_ONLY = 0,
    /** The block is stored and was never connected (`valid-headers`). */
    OUTRIGGER_BLOCK_STATE_STORED = 1,
    /** It was connected once and found valid in full (`valid-fork`, `active`). */
    OUTRIGGER_BLOCK_STATE_VALID = 2,
    /** It, or an ancestor of it, breaks a rule or was invalidated (`invalid`). */
    OUTRIGGER_BLOCK_STATE_FAILED = 3,
};

/** Perhaps a value. [optional hash] */
typedef struct outrigger_optional_hash_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_hash_t value;
} outrigger_optional_hash_t;

/** What the index knows of a block. */
typedef struct outrigger_block_info_t {
    /** Its hash. [hash] */
    outrigger_hash_t hash;
    /** The 80 bytes of its header. [array 80] */
    outrigger_array80_t header;
    /** Its height. [u32] */
    uint32_t height;
    /** The work of the chain up to and with it, big-endian. [array 32] */
    outrigger_array32_t chain_work;
    /**
     * The number of its transactions, 0 while only the header is known; none where the node knows headers alone.
     * [optional u32]
     */
    outrigger_optional_u32_t transactions;
    /** The median time of it and its ten predecessors, in seconds. [u32] */
    uint32_t median_time;
    /** How far it has been checked. [block_state] */
    outrigger_block_state_t state;
    /** Whether it is part of the best chain. [bool] */
    bool in_best_chain;
    /** Its successor on the best chain. [optional hash] */
    outrigger_optional_hash_t next;
    /**
     * The block's serialised size in bytes, 0 while only the header is known; none where the node knows headers alone.
     * [optional u32]
     */
    outrigger_optional_u32_t size;
} outrigger_block_info_t;

/** Perhaps a value. [optional block_info] */
typedef struct outrigger_optional_block_info_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_block_info_t value;
} outrigger_optional_block_info_t;

/** How a block is named. */
typedef struct outrigger_block_ref_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** By its hash, on any branch. */
        struct {
            /** The hash. [hash] */
            outrigger_hash_t hash;
        } hash;
        /** By its height on the best chain. */
        struct {
            /** The height. [u32] */
            uint32_t height;
        } height;
    } as;
} outrigger_block_ref_t;

/** What an outrigger_block_ref_t can be. */
enum {
    /** By its hash, on any branch. */
    OUTRIGGER_BLOCK_REF_HASH = 0,
    /** By its height on the best chain. */
    OUTRIGGER_BLOCK_REF_HEIGHT = 1,
};

/** Perhaps a value. [optional bytes] */
typedef struct outrigger_optional_bytes_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_bytes_t value;
} outrigger_optional_bytes_t;

/** What an output holds. */
typedef struct outrigger_tx_out_t {
    /** Its value, in satoshi. [u64] */
    uint64_t value;
    /** Its script. [bytes] */
    outrigger_bytes_t script_pubkey;
} outrigger_tx_out_t;

/** An unspent output. */
typedef struct outrigger_coin_t {
    /** Value and script. [tx_out] */
    outrigger_tx_out_t output;
    /** The height of its block; UINT32_MAX when its transaction is in the mempool. [u32] */
    uint32_t height;
    /** Whether its transaction is a coinbase. [bool] */
    bool coinbase;
} outrigger_coin_t;

/** The outputs that one transaction of a block spent, in the order of its inputs. */
typedef struct outrigger_spent_outputs_t {
    /** The coins; empty for a coinbase. [list of coin] */
    outrigger_list_t coins;
} outrigger_spent_outputs_t;

/** Perhaps a value. [optional list of spent_outputs] */
typedef struct outrigger_optional_list_of_spent_outputs_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_list_t value;
} outrigger_optional_list_of_spent_outputs_t;

/** A confirmed transaction. */
typedef struct outrigger_confirmed_transaction_t {
    /** Its serialisation, with witness. [bytes] */
    outrigger_bytes_t raw;
    /** The block of the best chain that holds it. [hash] */
    outrigger_hash_t block;
    /** Its position in the block; the coinbase has 0. [u32] */
    uint32_t index;
} outrigger_confirmed_transaction_t;

/** Perhaps a value. [optional confirmed_transaction] */
typedef struct outrigger_optional_confirmed_transaction_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_confirmed_transaction_t value;
} outrigger_optional_confirmed_transaction_t;

/** Perhaps a value. [optional coin] */
typedef struct outrigger_optional_coin_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_coin_t value;
} outrigger_optional_coin_t;

/** An output of a transaction. */
typedef struct outrigger_out_point_t {
    /** The transaction's id. [hash] */
    outrigger_hash_t txid;
    /** The output's position; the first has 0. [u32] */
    uint32_t vout;
} outrigger_out_point_t;

/** The end of a branch. */
typedef struct outrigger_chain_tip_t {
    /** The last block of the branch. [hash] */
    outrigger_hash_t hash;
    /** Its height. [u32] */
    uint32_t height;
    /** The number of blocks from the best chain to it; 0 for the best chain. [u32] */
    uint32_t branch_length;
    /** How far it has been checked. [block_state] */
    outrigger_block_state_t state;
} outrigger_chain_tip_t;

/** Several values. [(bytes, u8)] */
typedef struct outrigger_tuple_of_bytes_and_u8_t {
    /** [bytes] */
    outrigger_bytes_t first;
    /** [u8] */
    uint8_t second;
} outrigger_tuple_of_bytes_and_u8_t;

/** What the next block on the tip must and may be (BIP 22). */
typedef struct outrigger_next_block_t {
    /** The tip it builds on. [tip] */
    outrigger_tip_t tip;
    /** Its version, with the bits of deployments in progress (BIP 9). [i32] */
    int32_t version;
    /** Its target in compact form. [u32] */
    uint32_t bits;
    /** The least time it may have: the tip's median time plus one, in seconds. [u32] */
    uint32_t min_time;
    /** The time to put in its header: now, but at least `min_time`, in seconds. [u32] */
    uint32_t time;
    /** The subsidy of its height, in satoshi. [u64] */
    uint64_t subsidy;
    /** The names of the rules it is under, in order, `!`-prefixed where a client must know the rule. [list of text] */
    outrigger_list_t rules;
    /** Deployments that can be signalled: name and bit. [list of (text, u8)] */
    outrigger_list_t available;
} outrigger_next_block_t;

/** What became of a block that was submitted or proposed. */
typedef struct outrigger_verdict_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Breaks a rule. */
        struct {
            /** The reason as BIP 22 and bitcoind word it, for example `bad-txnmrklroot`. [text] */
            outrigger_bytes_t reason;
            /** More of it, for people; may be empty. Since minor 1. [text] */
            outrigger_bytes_t detail;
        } invalid;
    } as;
} outrigger_verdict_t;

/** What an outrigger_verdict_t can be. */
enum {
    /** Valid, and for a submission: connected. */
    OUTRIGGER_VERDICT_VALID = 0,
    /** Known already, and valid. */
    OUTRIGGER_VERDICT_DUPLICATE = 1,
    /** Known already, and invalid. */
    OUTRIGGER_VERDICT_DUPLICATE_INVALID = 2,
    /** Known already, not judged yet. */
    OUTRIGGER_VERDICT_DUPLICATE_INCONCLUSIVE = 3,
    /** Stored, but not on the best chain, so not judged. */
    OUTRIGGER_VERDICT_INCONCLUSIVE = 4,
    /** A proposal that does not build on the tip. */
    OUTRIGGER_VERDICT_NOT_BEST_PREVIOUS = 5,
    /** Breaks a rule. */
    OUTRIGGER_VERDICT_INVALID = 6,
    /** The bytes are no block. */
    OUTRIGGER_VERDICT_UNDECODABLE = 7,
    /** A block without transactions, or whose first is no coinbase: the same as the reason `bad-cb-missing`. */
    OUTRIGGER_VERDICT_NO_COINBASE = 8,
};

/** An unspent output and where it stands. */
typedef struct outrigger_unspent_output_t {
    /** Its transaction and index. [out_point] */
    outrigger_out_point_t outpoint;
    /** What it holds. [coin] */
    outrigger_coin_t coin;
} outrigger_unspent_output_t;

/** Perhaps a value. [optional out_point] */
typedef struct outrigger_optional_out_point_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_out_point_t value;
} outrigger_optional_out_point_t;

/** How far a deployment that miners signal has come (BIP 9). */
typedef uint8_t outrigger_deployment_stage_t;

/** What an outrigger_deployment_stage_t can be. */
enum {
    /** Signals do not count yet (`defined`). */
    OUTRIGGER_DEPLOYMENT_STAGE_DEFINED = 0,
    /** Signals count (`started`). */
    OUTRIGGER_DEPLOYMENT_STAGE_STARTED = 1,
    /** Enough blocks of a period have signalled (`locked_in`). */
    OUTRIGGER_DEPLOYMENT_STAGE_LOCKED_IN = 2,
    /** The rules are in force (`active`). */
    OUTRIGGER_DEPLOYMENT_STAGE_ACTIVE = 3,
    /** The time for signals has passed (`failed`). */
    OUTRIGGER_DEPLOYMENT_STAGE_FAILED = 4,
};

/** A deployment that miners signal (BIP 9), as it stands with a block. */
typedef struct outrigger_signalled_deployment_t {
    /** The bit of a block's version that signals. [u8] */
    uint8_t bit;
    /** From which median time on signals count, in seconds; -1 where the rules are always in force. [i64] */
    int64_t start_time;
    /** The median time at which it fails, in seconds. [i64] */
    int64_t timeout;
    /** The least height at which the rules are in force. [u32] */
    uint32_t min_activation_height;
    /** Its stage for the block itself. [deployment_stage] */
    outrigger_deployment_stage_t stage;
    /** The height of the first block of that stage. [u32] */
    uint32_t since;
    /** Its stage for a block on that one. [deployment_stage] */
    outrigger_deployment_stage_t next_stage;
    /** The height of the first block of that stage. [u32] */
    uint32_t next_since;
    /** How many blocks a period has. [u32] */
    uint32_t period;
    /** How many of them must signal. [u32] */
    uint32_t threshold;
    /**
     * Which blocks of the period up to this one signal, the first of them first; empty where signals do not count.
     * [list of bool]
     */
    outrigger_list_t signals;
} outrigger_signalled_deployment_t;

/** How it is found out whether the rules of a deployment are in force. */
typedef struct outrigger_deployment_rule_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** They are, from a height on (`buried`). */
        struct {
            /** The height. [u32] */
            uint32_t height;
        } buried;
        /** Miners signal (`bip9`). */
        struct {
            /** What came of it. [signalled_deployment] */
            outrigger_signalled_deployment_t progress;
        } signalled;
    } as;
} outrigger_deployment_rule_t;

/** What an outrigger_deployment_rule_t can be. */
enum {
    /** They are, from a height on (`buried`). */
    OUTRIGGER_DEPLOYMENT_RULE_BURIED = 0,
    /** Miners signal (`bip9`). */
    OUTRIGGER_DEPLOYMENT_RULE_SIGNALLED = 1,
};

/** A change of the rules. */
typedef struct outrigger_deployment_t {
    /** The name that bitcoind gives it. [text] */
    outrigger_bytes_t name;
    /** How it is found out whether it is in force. [deployment_rule] */
    outrigger_deployment_rule_t rule;
} outrigger_deployment_t;

/** Perhaps a value. [optional list of deployment] */
typedef struct outrigger_optional_list_of_deployment_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_list_t value;
} outrigger_optional_list_of_deployment_t;

/** The mempool as a whole. */
typedef struct outrigger_mempool_info_t {
    /** The number of transactions. [u64] */
    uint64_t transactions;
    /** The sum of their virtual sizes, in virtual bytes. [u64] */
    uint64_t virtual_size;
    /** The memory they take, in bytes. [u64] */
    uint64_t usage;
    /** The sum of their fees, in satoshi. [u64] */
    uint64_t total_fee;
    /** The limit of `usage`, in bytes. [u64] */
    uint64_t max_usage;
    /** The least feerate that is accepted, in satoshi per 1000 virtual bytes. [u64] */
    uint64_t min_feerate;
    /** The least feerate that is relayed, in satoshi per 1000 virtual bytes. [u64] */
    uint64_t relay_feerate;
    /** The feerate by which a replacement must pay more, in satoshi per 1000 virtual bytes. [u64] */
    uint64_t incremental_feerate;
    /** Counts every change of the mempool, and every block; a poller compares it. [u64] */
    uint64_t sequence;
    /**
     * Counts the transactions that came and those that left, for whatever reason: `mempool_sequence` of getrawmempool.
     * Since minor 1. [u64]
     */
    uint64_t moves;
    /** The number of transactions that `unbroadcast` names. Since minor 1. [u64] */
    uint64_t unbroadcast;
} outrigger_mempool_info_t;

/** A transaction of the mempool. */
typedef struct outrigger_mempool_entry_t {
    /** Its id. [hash] */
    outrigger_hash_t txid;
    /** Its id with witness. [hash] */
    outrigger_hash_t wtxid;
    /** Its weight, in weight units. [u64] */
    uint64_t weight;
    /** Its virtual size by weight and signature operations, in virtual bytes. [u64] */
    uint64_t virtual_size;
    /** Its fee, in satoshi. [u64] */
    uint64_t fee;
    /** Its fee with what prioritisetransaction added, in satoshi. [i64] */
    int64_t modified_fee;
    /** When it came, in seconds. [u64] */
    uint64_t time;
    /** The tip's height when it came. [u32] */
    uint32_t height;
    /** Transactions of the mempool it builds on, itself included: their number. [u64] */
    uint64_t ancestor_count;
    /** The same: their virtual size. [u64] */
    uint64_t ancestor_size;
    /** The same: their fees with what was added, in satoshi. [i64] */
    int64_t ancestor_fees;
    /** Transactions of the mempool that build on it, itself included: their number. [u64] */
    uint64_t descendant_count;
    /** The same: their virtual size. [u64] */
    uint64_t descendant_size;
    /** The same: their fees with what was added, in satoshi. [i64] */
    int64_t descendant_fees;
    /** The transactions of the mempool whose outputs it spends. [list of hash] */
    outrigger_list_t depends;
    /** The transactions of the mempool that spend its outputs. [list of hash] */
    outrigger_list_t spent_by;
    /** Whether it, or one it builds on, signals replaceability (BIP 125). [bool] */
    bool replaceable;
} outrigger_mempool_entry_t;

/** Perhaps a value. [optional mempool_entry] */
typedef struct outrigger_optional_mempool_entry_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_mempool_entry_t value;
} outrigger_optional_mempool_entry_t;

/** A transaction of the mempool, serialised. */
typedef struct outrigger_raw_transaction_t {
    /** Its serialisation, with witness. [bytes] */
    outrigger_bytes_t raw;
} outrigger_raw_transaction_t;

/** Perhaps a value. [optional raw_transaction] */
typedef struct outrigger_optional_raw_transaction_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_raw_transaction_t value;
} outrigger_optional_raw_transaction_t;

/** What became of a transaction that was submitted or tried. */
typedef struct outrigger_admission_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Accepted (or, when tried: it would be). */
        struct {
            /** Its id. [hash] */
            outrigger_hash_t txid;
            /** Its id with witness. [hash] */
            outrigger_hash_t wtxid;
            /** Its virtual size, in virtual bytes. [u64] */
            uint64_t virtual_size;
            /** Its fee, in satoshi. [u64] */
            uint64_t fee;
        } accepted;
        /** In the mempool already. */
        struct {
            /** Its id. [hash] */
            outrigger_hash_t txid;
        } known;
        /** Refused. */
        struct {
            /** The reason as bitcoind words it, for example `txn-mempool-conflict`. [text] */
            outrigger_bytes_t reason;
            /** More of it; may be empty. [text] */
            outrigger_bytes_t detail;
        } rejected;
        /** Its feerate is above what the caller allows. */
        struct {
            /** The fee, in satoshi. [u64] */
            uint64_t fee;
        } fee_too_high;
    } as;
} outrigger_admission_t;

/** What an outrigger_admission_t can be. */
enum {
    /** Accepted (or, when tried: it would be). */
    OUTRIGGER_ADMISSION_ACCEPTED = 0,
    /** In the mempool already. */
    OUTRIGGER_ADMISSION_KNOWN = 1,
    /** Refused. */
    OUTRIGGER_ADMISSION_REJECTED = 2,
    /** Refused, because an input is unknown or spent. */
    OUTRIGGER_ADMISSION_MISSING_INPUTS = 3,
    /** Confirmed already, with unspent outputs. */
    OUTRIGGER_ADMISSION_ALREADY_IN_CHAIN = 4,
    /** The bytes are no transaction. */
    OUTRIGGER_ADMISSION_UNDECODABLE = 5,
    /** Its feerate is above what the caller allows. */
    OUTRIGGER_ADMISSION_FEE_TOO_HIGH = 6,
};

/** A transaction selected for the next block. */
typedef struct outrigger_selected_t {
    /** Its serialisation, with witness. [bytes] */
    outrigger_bytes_t raw;
    /** Its id. [hash] */
    outrigger_hash_t txid;
    /** Its id with witness. [hash] */
    outrigger_hash_t wtxid;
    /** Its fee, in satoshi. [u64] */
    uint64_t fee;
    /** Its cost in signature operations (BIP 141). [u64] */
    uint64_t sigops;
    /** Its weight, in weight units. [u64] */
    uint64_t weight;
    /** For each input that spends an earlier selected one: that one's position, counted from 1. [list of u32] */
    outrigger_list_t depends;
} outrigger_selected_t;

/** A selection for the next block, and what that block must be. */
typedef struct outrigger_candidate_t {
    /**
     * Names tip and transactions: another one of the same version has the same. Never 0, and not used again while the
     * host runs. [u64]
     */
    uint64_t version;
    /** What a block of it must and may be. `next.tip` is the tip that it builds on. [next_block] */
    outrigger_next_block_t next;
    /** In an order in which parents precede their children. [list of selected] */
    outrigger_list_t transactions;
    /** The sum of their fees, in satoshi. [u64] */
    uint64_t fees;
    /** The mempool's sequence when it was made. [u64] */
    uint64_t sequence;
} outrigger_candidate_t;

/** Perhaps a value. [optional candidate] */
typedef struct outrigger_optional_candidate_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_candidate_t value;
} outrigger_optional_candidate_t;

/** Perhaps a value. [optional i64] */
typedef struct outrigger_optional_i64_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    int64_t value;
} outrigger_optional_i64_t;

/** What was added to the fee that a transaction is selected by. */
typedef struct outrigger_prioritised_t {
    /** The transaction, which need not be known. [hash] */
    outrigger_hash_t txid;
    /** What was added, in satoshi; below 0 it was taken away. Never 0. [i64] */
    int64_t fee_delta;
    /** The fee with it, in satoshi; none where the transaction is not in the mempool. [optional i64] */
    outrigger_optional_i64_t modified_fee;
} outrigger_prioritised_t;

/** Perhaps a value. [optional bool] */
typedef struct outrigger_optional_bool_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    bool value;
} outrigger_optional_bool_t;

/** How a wallet is made (createwallet). */
typedef struct outrigger_create_options_t {
    /** Its name, also of its folder. [text] */
    outrigger_bytes_t name;
    /** It will never hold a private key. [bool] */
    bool disable_private_keys;
    /** It begins without keys of its own. [bool] */
    bool blank;
    /** It is encrypted from the start with this passphrase, where it is not empty. [secret] */
    outrigger_bytes_t passphrase;
    /** Accepted and shown; coins are chosen as without it. [bool] */
    bool avoid_reuse;
    /** Which imports it takes: descriptors only, keys and scripts only, or (none) both. [optional bool] */
    outrigger_optional_bool_t descriptors;
    /** Whether the host loads it at every start; none leaves the list as it is. [optional bool] */
    outrigger_optional_bool_t load_on_startup;
} outrigger_create_options_t;

/** The block up to which a wallet has followed the chain. */
typedef struct outrigger_synced_t {
    /** Its hash. [hash] */
    outrigger_hash_t hash;
    /** Its height. [u32] */
    uint32_t height;
    /** Its time, in seconds. [u32] */
    uint32_t time;
    /** The median time of it and its ten predecessors, in seconds. [u32] */
    uint32_t median_time;
} outrigger_synced_t;

/** Which imports a wallet takes. */
typedef uint8_t outrigger_wallet_kind_t;

/** What an outrigger_wallet_kind_t can be. */
enum {
    /** Both. */
    OUTRIGGER_WALLET_KIND_BOTH = 0,
    /** importdescriptors only. */
    OUTRIGGER_WALLET_KIND_DESCRIPTORS = 1,
    /** importmulti only. */
    OUTRIGGER_WALLET_KIND_LEGACY = 2,
};

/** How far a rescan has come. */
typedef struct outrigger_rescan_progress_t {
    /** How long it has run, in seconds. [u64] */
    uint64_t duration;
    /** The part that is done, in millionths. [u32] */
    uint32_t millionths;
} outrigger_rescan_progress_t;

/** Perhaps a value. [optional rescan_progress] */
typedef struct outrigger_optional_rescan_progress_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_rescan_progress_t value;
} outrigger_optional_rescan_progress_t;

/** The kind of an address. */
typedef uint8_t outrigger_address_type_t;

/** What an outrigger_address_type_t can be. */
enum {
    /** P2PKH. */
    OUTRIGGER_ADDRESS_TYPE_LEGACY = 0,
    /** P2WPKH in P2SH. */
    OUTRIGGER_ADDRESS_TYPE_P2SH_SEGWIT = 1,
    /** P2WPKH. */
    OUTRIGGER_ADDRESS_TYPE_BECH32 = 2,
    /** P2TR. */
    OUTRIGGER_ADDRESS_TYPE_BECH32M = 3,
};

/** Where new addresses of one type and side come from: an active descriptor, or the imported keypool. */
typedef struct outrigger_address_source_t {
    /** The type. [address_type] */
    outrigger_address_type_t kind;
    /** Whether the addresses are for change. [bool] */
    bool internal;
    /**
     * Whether it has addresses to give (`CanGetAddresses` of Bitcoin Core): its private keys are held, or scripts are
     * derived ahead. [bool]
     */
    bool available;
} outrigger_address_source_t;

/** The wallet of the call. */
typedef struct outrigger_wallet_info_t {
    /** Its name. [text] */
    outrigger_bytes_t name;
    /** Where it stands. Depths are counted from here, never from the chain's tip. [synced] */
    outrigger_synced_t synced;
    /** Which imports it takes. [wallet_kind] */
    outrigger_wallet_kind_t kind;
    /** Whether it may hold private keys. [bool] */
    bool private_keys_enabled;
    /** Whether it was made without keys of its own. Imports leave it as it is. [bool] */
    bool blank;
    /** As given to createwallet. [bool] */
    bool avoid_reuse;
    /** Whether its keys are sealed with a passphrase. [bool] */
    bool encrypted;
    /** Whether they are sealed now: encrypted and not unlocked. [bool] */
    bool locked;
    /** Until when it is unlocked, in seconds; 0 when locked or not encrypted. [u64] */
    uint64_t unlocked_until;
    /** The rescan that runs now, or is reserved by the import that it follows. [optional rescan_progress] */
    outrigger_optional_rescan_progress_t rescan;
    /** The number of its transactions. [u64] */
    uint64_t transactions;
    /**
     * Addresses that lie ahead for receiving: of all types together, or in a wallet that takes keys and scripts only,
     * whose keys give any type each, of the type with the fewest. [u64]
     */
    uint64_t keypool_external;
    /** The same for change. [u64] */
    uint64_t keypool_internal;
    /** The birth time of its oldest key or script, in seconds. [u64] */
    uint64_t birth_time;
    /** Whether something was imported or created since the last backup. [bool] */
    bool backup_needed;
    /** When the last backup was made, in seconds; 0 when none was. [u64] */
    uint64_t last_backup;
    /**
     * How many scripts of each descriptor are kept ahead of the last one used; 0 where the host does not say. Since
     * minor 1. [u32]
     */
    uint32_t keypool;
    /**
     * Where new addresses come from: at most one source of each type and side, receiving first. Since minor 1. [list of
     * address_source]
     */
    outrigger_list_t sources;
    /**
     * When the oldest unused key for new addresses was made or born, in seconds, the later of both sides. 0 where a
     * side has none, and for all but OUTRIGGER_WALLET_KIND_LEGACY. Since minor 1. [u64]
     */
    uint64_t keypool_oldest;
    /**
     * What the wallet's owner should know, for people: that a former key is still to be overwritten in its file. Since
     * minor 1. [list of text]
     */
    outrigger_list_t warnings;
} outrigger_wallet_info_t;

/** Whose a script is. Ordered: the greater one wins where several rules apply. */
typedef uint8_t outrigger_ownership_t;

/** What an outrigger_ownership_t can be. */
enum {
    /** Not ours. */
    OUTRIGGER_OWNERSHIP_NONE = 0,
    /** Watched, but not spendable by this wallet's keys. */
    OUTRIGGER_OWNERSHIP_WATCH_ONLY = 1,
    /** Ours. */
    OUTRIGGER_OWNERSHIP_SPENDABLE = 2,
};

/** Perhaps a value. [optional array 32] */
typedef struct outrigger_optional_array32_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_array32_t value;
} outrigger_optional_array32_t;

/** A leaf of a taproot output's script tree. */
typedef struct outrigger_tap_leaf_t {
    /** Its script. [bytes] */
    outrigger_bytes_t script;
    /** Its control block. [bytes] */
    outrigger_bytes_t control_block;
} outrigger_tap_leaf_t;

/** What spending a taproot output takes. */
typedef struct outrigger_taproot_data_t {
    /** The internal key, x only. [array 32] */
    outrigger_array32_t internal_key;
    /** The root of the script tree, where there is one. [optional array 32] */
    outrigger_optional_array32_t merkle_root;
    /** The leaves. [list of tap_leaf] */
    outrigger_list_t leaves;
} outrigger_taproot_data_t;

/** Perhaps a value. [optional taproot_data] */
typedef struct outrigger_optional_taproot_data_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_taproot_data_t value;
} outrigger_optional_taproot_data_t;

/** What is known for spending an output, short of the keys themselves. */
typedef struct outrigger_solving_data_t {
    /** Redeem scripts and witness scripts. [list of bytes] */
    outrigger_list_t scripts;
    /** The public keys behind key hashes and in the scripts, 33 or 65 bytes each. [list of bytes] */
    outrigger_list_t public_keys;
    /** For a taproot output. [optional taproot_data] */
    outrigger_optional_taproot_data_t taproot;
} outrigger_solving_data_t;

/** 4 bytes. [array 4] */
typedef struct outrigger_array4_t {
    /** They. */
    uint8_t bytes[4];
} outrigger_array4_t;

/** Where a public key comes from (BIP 32). */
typedef struct outrigger_key_origin_t {
    /** The public key. [bytes] */
    outrigger_bytes_t public_key;
    /** The master key's fingerprint. [array 4] */
    outrigger_array4_t fingerprint;
    /** The path from there, as `m/84h/1h/0h/0/5`. [text] */
    outrigger_bytes_t path;
} outrigger_key_origin_t;

/** What the wallet knows of a script. */
typedef struct outrigger_script_info_t {
    /** Whose it is. [ownership] */
    outrigger_ownership_t ownership;
    /** Whether its spending conditions are known. [bool] */
    bool solvable;
    /** Its label in the address book; none where it has no entry. [optional text] */
    outrigger_optional_bytes_t label;
    /** Whether payments to it count as change. [bool] */
    bool change;
    /** Whether it was derived for change. [bool] */
    bool internal;
    /** The birth time of its key or descriptor, in seconds; 0 when unknown. [u64] */
    uint64_t timestamp;
    /** The definite descriptor of this very script, with checksum; empty where unknown. [text] */
    outrigger_bytes_t descriptor;
    /** The descriptors of the wallet it was derived from, public and with checksum. [list of text] */
    outrigger_list_t parents;
    /** For spending it. [solving_data] */
    outrigger_solving_data_t solving;
    /** Where its keys come from. [list of key_origin] */
    outrigger_list_t origins;
} outrigger_script_info_t;

/** Perhaps a value. [optional script_info] */
typedef struct outrigger_optional_script_info_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_script_info_t value;
} outrigger_optional_script_info_t;

/** Where a wallet's transaction stands. */
typedef struct outrigger_tx_state_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** In the best chain. */
        struct {
            /** The block. [hash] */
            outrigger_hash_t block;
            /** The block's height. [u32] */
            uint32_t height;
            /** The position in the block. [u32] */
            uint32_t index;
            /** The block's time, in seconds. [u32] */
            uint32_t time;
        } confirmed;
        /** Made impossible by another transaction in a block. */
        struct {
            /** The block of the other. [hash] */
            outrigger_hash_t block;
            /** Its height. [u32] */
            uint32_t height;
        } conflicted;
    } as;
} outrigger_tx_state_t;

/** What an outrigger_tx_state_t can be. */
enum {
    /** In the best chain. */
    OUTRIGGER_TX_STATE_CONFIRMED = 0,
    /** In the mempool. */
    OUTRIGGER_TX_STATE_IN_MEMPOOL = 1,
    /** Neither, though nothing speaks against it. */
    OUTRIGGER_TX_STATE_INACTIVE = 2,
    /** Neither, and given up: its inputs may be spent again. */
    OUTRIGGER_TX_STATE_ABANDONED = 3,
    /** Made impossible by another transaction in a block. */
    OUTRIGGER_TX_STATE_CONFLICTED = 4,
};

/** Several values. [(bytes, bytes)] */
typedef struct outrigger_tuple_of_bytes_and_bytes_t {
    /** [bytes] */
    outrigger_bytes_t first;
    /** [bytes] */
    outrigger_bytes_t second;
} outrigger_tuple_of_bytes_and_bytes_t;

/** An output of a wallet's transaction. */
typedef struct outrigger_wallet_output_t {
    /** Its value, in satoshi. [u64] */
    uint64_t value;
    /** Its script. [bytes] */
    outrigger_bytes_t script;
    /** Whose it is. [ownership] */
    outrigger_ownership_t ownership;
    /** Whether it is change: ours, and without an entry in the address book. [bool] */
    bool change;
    /** The label of its address; none where it has no entry in the address book. [optional text] */
    outrigger_optional_bytes_t label;
    /**
     * The numbers of the wallet's descriptors it was derived from; outrigger_wallet_descriptor_texts() has the texts.
     * [list of u32]
     */
    outrigger_list_t descriptors;
} outrigger_wallet_output_t;

/** A transaction as the wallet stores it. Ownership, debit and labels are those of now: imports re-derive them. */
typedef struct outrigger_wallet_transaction_t {
    /** Whether another transaction of the wallet spends one of its inputs. [bool] */
    bool contested;
    /** Where it stands. [tx_state] */
    outrigger_tx_state_t state;
    /** Its id. [hash] */
    outrigger_hash_t txid;
    /** Its id with witness. [hash] */
    outrigger_hash_t wtxid;
    /** Its number in the order in which the wallet met its transactions. [u64] */
    uint64_t arrival;
    /** Its smart time, in seconds. [u64] */
    uint64_t time;
    /** When the wallet met it, in seconds. [u64] */
    uint64_t time_received;
    /** Whether it is a coinbase. [bool] */
    bool coinbase;
    /** Whether an input of its own signals replaceability (BIP 125). [bool] */
    bool signals;
    /** Its lock time where an input's sequence enforces it, else 0. [u32] */
    uint32_t lock_time;
    /** The sum of all its outputs, in satoshi. [u64] */
    uint64_t total_output;
    /** What it spends of ours that is spendable, in satoshi. [u64] */
    uint64_t debit_spendable;
    /** What it spends of ours that is watched, in satoshi. [u64] */
    uint64_t debit_watch_only;
    /** What was stored with it (`comment`, `to`, ...), by key. [list of (text, text)] */
    outrigger_list_t metadata;
    /** What it spends; empty for a coinbase. [list of out_point] */
    outrigger_list_t inputs;
    /** All its outputs. [list of wallet_output] */
    outrigger_list_t outputs;
} outrigger_wallet_transaction_t;

/** Whether a transaction can be replaced (BIP 125). */
typedef uint8_t outrigger_replaceable_t;

/** What an outrigger_replaceable_t can be. */
enum {
    /** It cannot, or is confirmed. */
    OUTRIGGER_REPLACEABLE_NO = 0,
    /** It, or an unconfirmed ancestor, signals it. */
    OUTRIGGER_REPLACEABLE_YES = 1,
    /** It is not in the mempool, so its ancestors are not known. */
    OUTRIGGER_REPLACEABLE_UNKNOWN = 2,
};

/** What only the moment says of a transaction: computed when it is told, never stored. */
typedef struct outrigger_outlook_t {
    /** Other transactions of the wallet that spend one of its inputs, by internal bytes. [list of hash] */
    outrigger_list_t conflicts;
    /**
     * Transactions of the mempool that spend one of its inputs, or one of those of the wallet's transactions that it
     * builds on and that wait as well, by internal bytes; none looked for while it is in the chain or the mempool
     * itself. [list of hash]
     */
    outrigger_list_t mempool_conflicts;
    /** Whether its outputs may be relied on: it is in the best chain, or will be by all that can be foreseen. [bool] */
    bool trusted;
    /** Whether it can be replaced. [replaceable] */
    outrigger_replaceable_t replaceable;
} outrigger_outlook_t;

/** Perhaps a value. [optional outlook] */
typedef struct outrigger_optional_outlook_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_outlook_t value;
} outrigger_optional_outlook_t;

/** A transaction of the wallet as it is told. */
typedef struct outrigger_history_row_t {
    /** It, as it is stored. [framed wallet_transaction] */
    outrigger_wallet_transaction_t transaction;
    /**
     * What the moment says of it. None for one in the best chain that is not contested: it is trusted, cannot be
     * replaced, and has no conflicts. [optional outlook]
     */
    outrigger_optional_outlook_t outlook;
} outrigger_history_row_t;

/** A part of the history. */
typedef struct outrigger_history_batch_t {
    /** The transactions. [list of history_row] */
    outrigger_list_t rows;
    /** Where to go on; none when this was the end. [optional bytes] */
    outrigger_optional_bytes_t next;
} outrigger_history_batch_t;

/** Which transactions, and in which order. */
typedef struct outrigger_history_range_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Those in the best chain from a height on, by height and position. */
        struct {
            /** The first height. [u32] */
            uint32_t from_height;
        } confirmed;
        /** Those whose conflict confirmed at a height or above, by that height, then arrival. */
        struct {
            /** The first height. [u32] */
            uint32_t from_height;
        } conflicted;
    } as;
} outrigger_history_range_t;

/** What an outrigger_history_range_t can be. */
enum {
    /** Those in the best chain from a height on, by height and position. */
    OUTRIGGER_HISTORY_RANGE_CONFIRMED = 0,
    /** Those in the mempool, inactive or abandoned, by arrival. */
    OUTRIGGER_HISTORY_RANGE_UNCONFIRMED = 1,
    /** Those whose conflict confirmed at a height or above, by that height, then arrival. */
    OUTRIGGER_HISTORY_RANGE_CONFLICTED = 2,
    /** All, by arrival. */
    OUTRIGGER_HISTORY_RANGE_ALL = 3,
};

/** A question for a part of the history. */
typedef struct outrigger_history_query_t {
    /** Which transactions. [history_range] */
    outrigger_history_range_t range;
    /** From the end backwards. [bool] */
    bool reverse;
    /** Where the last batch ended; none for the first. [optional bytes] */
    outrigger_optional_bytes_t after;
    /** The most to give; the host ends a batch sooner when it grows large. [u32] */
    uint32_t limit;
} outrigger_history_query_t;

/** An output of ours that nothing in the chain, the mempool or the wallet spends. */
typedef struct outrigger_wallet_coin_t {
    /** Which. [out_point] */
    outrigger_out_point_t outpoint;
    /** Its value, in satoshi. [u64] */
    uint64_t value;
    /** Its script. [bytes] */
    outrigger_bytes_t script;
    /** Where its transaction stands: confirmed, in the mempool or inactive. [tx_state] */
    outrigger_tx_state_t state;
    /** Whether its transaction is a coinbase. [bool] */
    bool coinbase;
    /** Whose it is. [ownership] */
    outrigger_ownership_t ownership;
    /** Whether it is change. [bool] */
    bool change;
    /** The label of its address. [optional text] */
    outrigger_optional_bytes_t label;
    /** Whether its transaction is confirmed or trusted. [bool] */
    bool trusted;
    /** Whether the wallet spent something of its own in its transaction. [bool] */
    bool from_us;
} outrigger_wallet_coin_t;

/** A part of the coins. */
typedef struct outrigger_coin_batch_t {
    /** The coins, by outpoint. [list of wallet_coin] */
    outrigger_list_t coins;
    /** Where to go on; none when this was the end. [optional bytes] */
    outrigger_optional_bytes_t next;
} outrigger_coin_batch_t;

/** Several values. [(u32, u32)] */
typedef struct outrigger_tuple_of_u32_and_u32_t {
    /** [u32] */
    uint32_t first;
    /** [u32] */
    uint32_t second;
} outrigger_tuple_of_u32_and_u32_t;

/** Perhaps a value. [optional (u32, u32)] */
typedef struct outrigger_optional_tuple_of_u32_and_u32_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_tuple_of_u32_and_u32_t value;
} outrigger_optional_tuple_of_u32_and_u32_t;

/** A descriptor of the wallet. */
typedef struct outrigger_descriptor_info_t {
    /** Its text with checksum: public, or with private keys where these were asked for. [secret] */
    outrigger_bytes_t text;
    /** When it was born, in seconds. [u64] */
    uint64_t timestamp;
    /** Whether new addresses come from it. [bool] */
    bool active;
    /** Whether these are for change; none for one that is not active. [optional bool] */
    outrigger_optional_bool_t internal;
    /** The indexes in use: first and last, for a ranged one. [optional (u32, u32)] */
    outrigger_optional_tuple_of_u32_and_u32_t range;
    /** The next index to hand out. [u32] */
    uint32_t next_index;
} outrigger_descriptor_info_t;

/** What became of one request of an import. */
typedef struct outrigger_import_outcome_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Stored. */
        struct {
            /** The wallet may hold private keys, and not all of the descriptor's were given. [bool] */
            bool missing_private_keys;
            /** It cannot be active: it has no address type. [bool] */
            bool unknown_output_type;
        } imported;
        /** The wallet owns a script of it already. */
        struct {
            /** The script. [bytes] */
            outrigger_bytes_t script;
        } already_owned;
        /** The descriptor is known with a range that the new one does not include. */
        struct {
            /** The first index. [u32] */
            uint32_t begin;
            /** The last index. [u32] */
            uint32_t end;
        } range_shrinks;
        /** The text does not parse, or is beyond a limit. */
        struct {
            /** Why. [text] */
            outrigger_bytes_t reason;
        } bad_descriptor;
    } as;
} outrigger_import_outcome_t;

/** What an outrigger_import_outcome_t can be. */
enum {
    /** Stored. */
    OUTRIGGER_IMPORT_OUTCOME_IMPORTED = 0,
    /** The wallet may not hold private keys, and some were given. */
    OUTRIGGER_IMPORT_OUTCOME_PRIVATE_KEYS_DISABLED = 1,
    /** The wallet owns a script of it already. */
    OUTRIGGER_IMPORT_OUTCOME_ALREADY_OWNED = 2,
    /** Index 0 cannot be derived: a hardened step without the private key. */
    OUTRIGGER_IMPORT_OUTCOME_NOT_EXPANDABLE = 3,
    /** The wallet holds private keys, and none was given. */
    OUTRIGGER_IMPORT_OUTCOME_NO_PRIVATE_KEYS = 4,
    /** The descriptor is known with a range that the new one does not include. */
    OUTRIGGER_IMPORT_OUTCOME_RANGE_SHRINKS = 5,
    /** The text does not parse, or is beyond a limit. */
    OUTRIGGER_IMPORT_OUTCOME_BAD_DESCRIPTOR = 6,
    /** The storage failed; nothing of the whole call was stored. */
    OUTRIGGER_IMPORT_OUTCOME_NOT_STORED = 7,
};

/** A descriptor to import. Its text has been parsed and its checksum checked; ranges are inclusive. */
typedef struct outrigger_descriptor_import_t {
    /**
     * The text, possibly with private keys. One with several paths (BIP 389) stands for a descriptor each, which are
     * stored together or not at all; of two paths the first is for receiving and the second for change. [secret]
     */
    outrigger_bytes_t text;
    /**
     * The indexes to import; none for one without a wildcard, or for as many as the wallet keeps ahead. [optional (u32,
     * u32)]
     */
    outrigger_optional_tuple_of_u32_and_u32_t range;
    /** The next index to hand out; none for the range's beginning. [optional u32] */
    outrigger_optional_u32_t next_index;
    /** Whether new addresses of its type come from it. [bool] */
    bool active;
    /** Whether they are for change; none where the request did not say. [optional bool] */
    outrigger_optional_bool_t internal;
    /** The label of its address; none where the request did not say. [optional text] */
    outrigger_optional_bytes_t label;
    /** When it was born, in seconds. [u64] */
    uint64_t timestamp;
} outrigger_descriptor_import_t;

/** Keys and scripts to import (importmulti), after their analysis. */
typedef struct outrigger_keys_import_t {
    /** The scriptPubKeys that the request is about, shortest first, then by bytes. [list of bytes] */
    const outrigger_bytes_t *script_pubkeys;
    /** How many there are. */
    size_t script_pubkeys_count;
    /** Redeem scripts and witness scripts to know. [list of bytes] */
    const outrigger_bytes_t *scripts;
    /** How many there are. */
    size_t scripts_count;
    /** Private keys, as WIF. [list of secret] */
    const outrigger_bytes_t *private_keys;
    /** How many there are. */
    size_t private_keys_count;
    /** Public keys to know, in the order of the request. [list of bytes] */
    const outrigger_bytes_t *public_keys;
    /** How many there are. */
    size_t public_keys_count;
    /** Where keys come from. [list of key_origin] */
    const outrigger_key_origin_t *origins;
    /** How many there are. */
    size_t origins_count;
    /** Whether the request says how to spend (a script, a key, or a descriptor with keys). [bool] */
    bool solving_data;
    /** Payments are change: no entry in the address book. [bool] */
    bool internal;
    /** The label of the addresses. [text] */
    outrigger_bytes_t label;
    /** Whether new public keys join the keypool. [bool] */
    bool keypool;
    /** When the keys were born, in seconds, at least 1. [u64] */
    uint64_t timestamp;
} outrigger_keys_import_t;

/** One request of an import. */
typedef struct outrigger_import_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** A descriptor (importdescriptors). */
        struct {
            /** It. [descriptor_import] */
            outrigger_descriptor_import_t descriptor;
        } descriptor;
        /** Keys and scripts (importmulti). */
        struct {
            /** They. [keys_import] */
            outrigger_keys_import_t keys;
        } keys;
        /**
         * Keys and scripts of several parts (importmulti of a descriptor with several paths), which are stored together
         * or not at all. Since minor 1.
         */
        struct {
            /** The parts. [list of keys_import] */
            const outrigger_keys_import_t *parts;
            /** How many there are. */
            size_t parts_count;
        } parts;
    } as;
} outrigger_import_t;

/** What an outrigger_import_t can be. */
enum {
    /** A descriptor (importdescriptors). */
    OUTRIGGER_IMPORT_DESCRIPTOR = 0,
    /** Keys and scripts (importmulti). */
    OUTRIGGER_IMPORT_KEYS = 1,
    /**
     * Keys and scripts of several parts (importmulti of a descriptor with several paths), which are stored together or
     * not at all. Since minor 1.
     */
    OUTRIGGER_IMPORT_PARTS = 2,
};

/** An entry of the address book. */
typedef struct outrigger_labelled_script_t {
    /** The address's script. [bytes] */
    outrigger_bytes_t script;
    /** Its label. [text] */
    outrigger_bytes_t label;
    /** Whose it is: of others' are those that the wallet pays to. [ownership] */
    outrigger_ownership_t ownership;
} outrigger_labelled_script_t;

/** Entries of the address book. */
typedef struct outrigger_label_batch_t {
    /** They, in no order that means anything. [list of labelled_script] */
    outrigger_list_t entries;
    /** Where the next batch goes on; none at the end. [optional bytes] */
    outrigger_optional_bytes_t next;
    /**
     * The scripts of those that were another's when they got their labels: what is imported later does not change their
     * purpose, which is `send`; that of the others is `receive`. Since minor 1. [list of bytes]
     */
    outrigger_list_t sending;
} outrigger_label_batch_t;

/** The kind of a signature. */
typedef struct outrigger_scheme_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** BIP 340 by the key after the BIP 341 tweak (a key path); 64 bytes. */
        struct {
            /** The script tree's merkle root; none for an output without scripts (BIP 86). [optional array 32] */
            outrigger_optional_array32_t merkle_root;
        } schnorr_tweaked;
    } as;
} outrigger_scheme_t;

/** What an outrigger_scheme_t can be. */
enum {
    /** ECDSA with RFC 6979, low S and low R; DER, without the sighash byte. */
    OUTRIGGER_SCHEME_ECDSA = 0,
    /** BIP 340 with no auxiliary randomness, by the key itself (a tapscript leaf); 64 bytes. */
    OUTRIGGER_SCHEME_SCHNORR = 1,
    /** BIP 340 by the key after the BIP 341 tweak (a key path); 64 bytes. */
    OUTRIGGER_SCHEME_SCHNORR_TWEAKED = 2,
};

/** A digest to sign. */
typedef struct outrigger_sign_request_t {
    /** The public key as it stands in the script: 33 or 65 bytes, or 32 for an x-only key (untweaked). [bytes] */
    outrigger_bytes_t public_key;
    /** The signature hash. [array 32] */
    outrigger_array32_t digest;
    /** The kind of the signature. [scheme] */
    outrigger_scheme_t scheme;
} outrigger_sign_request_t;

/** Digests of one transaction. */
typedef struct outrigger_sign_batch_t {
    /**
     * The scriptPubKeys the transaction spends: the wallet's keys for these may sign, and no others. [list of bytes]
     */
    const outrigger_bytes_t *scripts;
    /** How many there are. */
    size_t scripts_count;
    /** What to sign. [list of sign_request] */
    const outrigger_sign_request_t *requests;
    /** How many there are. */
    size_t requests_count;
} outrigger_sign_batch_t;

/** How much a line matters. */
typedef uint8_t outrigger_level_t;

/** What an outrigger_level_t can be. */
enum {
    /** Something failed that should not. */
    OUTRIGGER_LEVEL_ERROR = 0,
    /** Something is off, but goes on. */
    OUTRIGGER_LEVEL_WARN = 1,
    /** What an operator wants to read. */
    OUTRIGGER_LEVEL_INFO = 2,
    /** What a developer wants to read. */
    OUTRIGGER_LEVEL_DEBUG = 3,
};

/** How a rescan ended. */
typedef struct outrigger_rescan_outcome_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Some blocks could not be read. */
        struct {
            /** The running-maximum time of the last such block, in seconds. [u32] */
            uint32_t block_time;
        } unreadable;
    } as;
} outrigger_rescan_outcome_t;

/** What an outrigger_rescan_outcome_t can be. */
enum {
    /** Everything that had to be read was read. */
    OUTRIGGER_RESCAN_OUTCOME_COMPLETE = 0,
    /** Some blocks could not be read. */
    OUTRIGGER_RESCAN_OUTCOME_UNREADABLE = 1,
    /** Aborted by a client or by the host's stopping. */
    OUTRIGGER_RESCAN_OUTCOME_ABORTED = 2,
};

/** Something that happened. In parentheses stands the name by which a manifest asks to hear of it. */
typedef struct outrigger_event_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** The best chain has another tip (`tip`). */
        struct {
            /** The new tip. [hash] */
            outrigger_hash_t hash;
            /** Its height. [u32] */
            uint32_t height;
        } tip_changed;
        /** Transactions came to or left the mempool (`mempool`). */
        struct {
            /** The mempool's sequence afterwards. [u64] */
            uint64_t sequence;
        } mempool_changed;
        /** A wallet stored a transaction or changed what it knows of one (`wallet-transaction`). */
        struct {
            /** The wallet's name. [text] */
            outrigger_bytes_t wallet;
            /** The transaction. [hash] */
            outrigger_hash_t txid;
        } wallet_transaction;
        /** A rescan came to its end (`rescan`). */
        struct {
            /** The wallet's name. [text] */
            outrigger_bytes_t wallet;
            /** The number that `rescan_start` gave. [u64] */
            uint64_t rescan;
            /** How it ended. [rescan_outcome] */
            outrigger_rescan_outcome_t outcome;
        } rescan_finished;
        /** A wallet was locked or unlocked (`wallet-lock`). */
        struct {
            /** The wallet's name. [text] */
            outrigger_bytes_t wallet;
            /** Whether it is locked now. [bool] */
            bool locked;
        } wallet_lock_changed;
    } as;
} outrigger_event_t;

/** What an outrigger_event_t can be. */
enum {
    /** The best chain has another tip (`tip`). */
    OUTRIGGER_EVENT_TIP_CHANGED = 0,
    /** Transactions came to or left the mempool (`mempool`). */
    OUTRIGGER_EVENT_MEMPOOL_CHANGED = 1,
    /** A wallet stored a transaction or changed what it knows of one (`wallet-transaction`). */
    OUTRIGGER_EVENT_WALLET_TRANSACTION = 2,
    /** A rescan came to its end (`rescan`). */
    OUTRIGGER_EVENT_RESCAN_FINISHED = 3,
    /** A wallet was locked or unlocked (`wallet-lock`). */
    OUTRIGGER_EVENT_WALLET_LOCK_CHANGED = 4,
    /** The host is stopping; kept reply tokens should be answered now (always told). */
    OUTRIGGER_EVENT_SHUTTING_DOWN = 5,
};

/* ------------------------------------------------------------------------------------------------------------------
 * Reading and writing the messages
 * ------------------------------------------------------------------------------------------------------------------ */

/** [tip] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_tip(outrigger_reader_t *reader, outrigger_tip_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_hash(reader, &out->hash)
        && outrigger_get_u32(reader, &out->height)
        && outrigger_get_u32(reader, &out->time)
        && outrigger_get_u32(reader, &out->median_time);
}

/** [optional u64] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_u64(outrigger_reader_t *reader, outrigger_optional_u64_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_u64(reader, &out->value));
}

/** [optional u64] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_optional_u64(outrigger_writer_t *writer, const outrigger_optional_u64_t *value)
{
    bool present = value != NULL && value->present;
    outrigger_put_bool(writer, present);
    if (present) {
        outrigger_put_u64(writer, value->value);
    }
}

/** [list of bytes] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_bytes(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_bytes(reader);
    }
    return outrigger_end_list(reader, out);
}

/** Goes on behind [list of bytes]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_list_of_bytes(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_bytes(reader, &skipped);
}

/** [list of bytes] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_bytes(
    outrigger_writer_t *writer, const outrigger_bytes_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_bytes(writer, value[at]);
    }
}

/** [chain_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_chain_info(outrigger_reader_t *reader, outrigger_chain_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->network)
        && outrigger_get_tip(reader, &out->tip)
        && outrigger_get_u32(reader, &out->headers)
        && outrigger_get_optional_u64(reader, &out->size_on_disk)
        && outrigger_get_optional_u64(reader, &out->coins)
        && ((!reader->failed && reader->left == 0) || outrigger_get_list_of_bytes(reader, &out->warnings));
}

/** [array 80] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_array80(outrigger_reader_t *reader, outrigger_array80_t *out)
{
    return outrigger_get_fixed(reader, out->bytes, sizeof out->bytes);
}

/** [array 32] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_array32(outrigger_reader_t *reader, outrigger_array32_t *out)
{
    return outrigger_get_fixed(reader, out->bytes, sizeof out->bytes);
}

/** [array 32] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_array32(outrigger_writer_t *writer, const outrigger_array32_t *value)
{
    outrigger_append(writer, value->bytes, sizeof value->bytes);
}

/** [optional u32] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_u32(outrigger_reader_t *reader, outrigger_optional_u32_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_u32(reader, &out->value));
}

/** [optional u32] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_optional_u32(outrigger_writer_t *writer, const outrigger_optional_u32_t *value)
{
    bool present = value != NULL && value->present;
    outrigger_put_bool(writer, present);
    if (present) {
        outrigger_put_u32(writer, value->value);
    }
}

/** [block_state] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_block_state(outrigger_reader_t *reader, outrigger_block_state_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, out)) {
        return false;
    }
    switch (*out) {
    case OUTRIGGER_BLOCK_STATE_HEADER_ONLY:
    case OUTRIGGER_BLOCK_STATE_STORED:
    case OUTRIGGER_BLOCK_STATE_VALID:
    case OUTRIGGER_BLOCK_STATE_FAILED:
        return true;
    default:
        return outrigger_fail(reader);
    }
}

/** [optional hash] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_hash(outrigger_reader_t *reader, outrigger_optional_hash_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_hash(reader, &out->value));
}

/** Goes on behind [optional hash]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_hash(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip(reader, 32));
}

/** [block_info] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_block_info(outrigger_reader_t *reader, outrigger_block_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_hash(reader, &out->hash)
        && outrigger_get_array80(reader, &out->header)
        && outrigger_get_u32(reader, &out->height)
        && outrigger_get_array32(reader, &out->chain_work)
        && outrigger_get_optional_u32(reader, &out->transactions)
        && outrigger_get_u32(reader, &out->median_time)
        && outrigger_get_block_state(reader, &out->state)
        && outrigger_get_bool(reader, &out->in_best_chain)
        && outrigger_get_optional_hash(reader, &out->next)
        && outrigger_get_optional_u32(reader, &out->size);
}

/** [optional block_info] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_block_info(outrigger_reader_t *reader, outrigger_optional_block_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_block_info(reader, &out->value));
}

/** [block_ref] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_block_ref(outrigger_writer_t *writer, const outrigger_block_ref_t *value)
{
    outrigger_put_u8(writer, value->tag);
    switch (value->tag) {
    case OUTRIGGER_BLOCK_REF_HASH:
        outrigger_put_hash(writer, &value->as.hash.hash);
        break;
    case OUTRIGGER_BLOCK_REF_HEIGHT:
        outrigger_put_u32(writer, value->as.height.height);
        break;
    default:
        writer->failed = true;
        break;
    }
}

/** [optional bytes] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_optional_bytes(outrigger_reader_t *reader, outrigger_optional_bytes_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_bytes(reader, &out->value));
}

/** Goes on behind [optional bytes]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_bytes(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_bytes(reader));
}

/** [optional bytes] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_optional_bytes(outrigger_writer_t *writer, const outrigger_optional_bytes_t *value)
{
    bool present = value != NULL && value->present;
    outrigger_put_bool(writer, present);
    if (present) {
        outrigger_put_bytes(writer, value->value);
    }
}

/** [tx_out] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_tx_out(outrigger_reader_t *reader, outrigger_tx_out_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u64(reader, &out->value)
        && outrigger_get_bytes(reader, &out->script_pubkey);
}

/** Goes on behind [tx_out]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_tx_out(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 8)
        && outrigger_skip_bytes(reader);
}

/** [coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_coin(outrigger_reader_t *reader, outrigger_coin_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_tx_out(reader, &out->output)
        && outrigger_get_u32(reader, &out->height)
        && outrigger_get_bool(reader, &out->coinbase);
}

/** Goes on behind [coin]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_coin(outrigger_reader_t *reader)
{
    return outrigger_skip_tx_out(reader)
        && outrigger_skip(reader, 4)
        && outrigger_skip(reader, 1);
}

/** [list of coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_coin(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_coin(reader);
    }
    return outrigger_end_list(reader, out);
}

/** Goes on behind [list of coin]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_list_of_coin(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_coin(reader, &skipped);
}

/** [spent_outputs] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_spent_outputs(outrigger_reader_t *reader, outrigger_spent_outputs_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_coin(reader, &out->coins);
}

/** Goes on behind [spent_outputs]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_spent_outputs(outrigger_reader_t *reader)
{
    return outrigger_skip_list_of_coin(reader);
}

/**
 * [list of spent_outputs] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_spent_outputs(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_spent_outputs(reader);
    }
    return outrigger_end_list(reader, out);
}

/**
 * [optional list of spent_outputs] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the
 * reader's bytes.
 */
static inline bool outrigger_get_optional_list_of_spent_outputs(
    outrigger_reader_t *reader, outrigger_optional_list_of_spent_outputs_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_list_of_spent_outputs(reader, &out->value));
}

/**
 * [confirmed_transaction] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_confirmed_transaction(
    outrigger_reader_t *reader, outrigger_confirmed_transaction_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->raw)
        && outrigger_get_hash(reader, &out->block)
        && outrigger_get_u32(reader, &out->index);
}

/**
 * [optional confirmed_transaction] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the
 * reader's bytes.
 */
static inline bool outrigger_get_optional_confirmed_transaction(
    outrigger_reader_t *reader, outrigger_optional_confirmed_transaction_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_confirmed_transaction(reader, &out->value));
}

/** [optional coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_optional_coin(outrigger_reader_t *reader, outrigger_optional_coin_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_coin(reader, &out->value));
}

/** Goes on behind [optional coin]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_coin(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_coin(reader));
}

/**
 * [list of optional coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_optional_coin(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_optional_coin(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [out_point] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_out_point(outrigger_reader_t *reader, outrigger_out_point_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_hash(reader, &out->txid)
        && outrigger_get_u32(reader, &out->vout);
}

/** [out_point] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_out_point(outrigger_writer_t *writer, const outrigger_out_point_t *value)
{
    outrigger_put_hash(writer, &value->txid);
    outrigger_put_u32(writer, value->vout);
}

/** [list of out_point] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_out_point(outrigger_reader_t *reader, outrigger_list_t *out)
{
    return outrigger_get_list_of_fixed(reader, 36, out);
}

/** [list of out_point] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_out_point(
    outrigger_writer_t *writer, const outrigger_out_point_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_out_point(writer, &value[at]);
    }
}

/** [chain_tip] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_chain_tip(outrigger_reader_t *reader, outrigger_chain_tip_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_hash(reader, &out->hash)
        && outrigger_get_u32(reader, &out->height)
        && outrigger_get_u32(reader, &out->branch_length)
        && outrigger_get_block_state(reader, &out->state);
}

/** [list of chain_tip] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_chain_tip(outrigger_reader_t *reader, outrigger_list_t *out)
{
    return outrigger_get_list_of_fixed(reader, 41, out);
}

/** [(bytes, u8)] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_tuple_of_bytes_and_u8(
    outrigger_reader_t *reader, outrigger_tuple_of_bytes_and_u8_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->first)
        && outrigger_get_u8(reader, &out->second);
}

/** Goes on behind [(bytes, u8)]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_tuple_of_bytes_and_u8(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 1);
}

/**
 * [list of (bytes, u8)] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_tuple_of_bytes_and_u8(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_tuple_of_bytes_and_u8(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [next_block] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_next_block(outrigger_reader_t *reader, outrigger_next_block_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_tip(reader, &out->tip)
        && outrigger_get_i32(reader, &out->version)
        && outrigger_get_u32(reader, &out->bits)
        && outrigger_get_u32(reader, &out->min_time)
        && outrigger_get_u32(reader, &out->time)
        && outrigger_get_u64(reader, &out->subsidy)
        && outrigger_get_list_of_bytes(reader, &out->rules)
        && outrigger_get_list_of_tuple_of_bytes_and_u8(reader, &out->available);
}

/** [verdict] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_verdict(outrigger_reader_t *reader, outrigger_verdict_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_VERDICT_VALID:
    case OUTRIGGER_VERDICT_DUPLICATE:
    case OUTRIGGER_VERDICT_DUPLICATE_INVALID:
    case OUTRIGGER_VERDICT_DUPLICATE_INCONCLUSIVE:
    case OUTRIGGER_VERDICT_INCONCLUSIVE:
    case OUTRIGGER_VERDICT_NOT_BEST_PREVIOUS:
    case OUTRIGGER_VERDICT_UNDECODABLE:
    case OUTRIGGER_VERDICT_NO_COINBASE:
        return true;
    case OUTRIGGER_VERDICT_INVALID:
        return outrigger_get_bytes(reader, &out->as.invalid.reason)
            && ((!reader->failed && reader->left == 0) || outrigger_get_bytes(reader, &out->as.invalid.detail));
    default:
        return outrigger_fail(reader);
    }
}

/** [unspent_output] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_unspent_output(outrigger_reader_t *reader, outrigger_unspent_output_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_out_point(reader, &out->outpoint)
        && outrigger_get_coin(reader, &out->coin);
}

/** Goes on behind [unspent_output]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_unspent_output(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 36)
        && outrigger_skip_coin(reader);
}

/**
 * [list of unspent_output] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_unspent_output(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_unspent_output(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [optional out_point] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_optional_out_point(
    outrigger_writer_t *writer, const outrigger_optional_out_point_t *value)
{
    bool present = value != NULL && value->present;
    outrigger_put_bool(writer, present);
    if (present) {
        outrigger_put_out_point(writer, &value->value);
    }
}

/** [deployment_stage] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_deployment_stage(outrigger_reader_t *reader, outrigger_deployment_stage_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, out)) {
        return false;
    }
    switch (*out) {
    case OUTRIGGER_DEPLOYMENT_STAGE_DEFINED:
    case OUTRIGGER_DEPLOYMENT_STAGE_STARTED:
    case OUTRIGGER_DEPLOYMENT_STAGE_LOCKED_IN:
    case OUTRIGGER_DEPLOYMENT_STAGE_ACTIVE:
    case OUTRIGGER_DEPLOYMENT_STAGE_FAILED:
        return true;
    default:
        return outrigger_fail(reader);
    }
}

/** [list of bool] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_bool(outrigger_reader_t *reader, outrigger_list_t *out)
{
    return outrigger_get_list_of_fixed(reader, 1, out);
}

/** Goes on behind [list of bool]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_list_of_bool(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_bool(reader, &skipped);
}

/**
 * [signalled_deployment] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_signalled_deployment(
    outrigger_reader_t *reader, outrigger_signalled_deployment_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u8(reader, &out->bit)
        && outrigger_get_i64(reader, &out->start_time)
        && outrigger_get_i64(reader, &out->timeout)
        && outrigger_get_u32(reader, &out->min_activation_height)
        && outrigger_get_deployment_stage(reader, &out->stage)
        && outrigger_get_u32(reader, &out->since)
        && outrigger_get_deployment_stage(reader, &out->next_stage)
        && outrigger_get_u32(reader, &out->next_since)
        && outrigger_get_u32(reader, &out->period)
        && outrigger_get_u32(reader, &out->threshold)
        && outrigger_get_list_of_bool(reader, &out->signals);
}

/** Goes on behind [signalled_deployment]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_signalled_deployment(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 1)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 4)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 4)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 4)
        && outrigger_skip(reader, 4)
        && outrigger_skip(reader, 4)
        && outrigger_skip_list_of_bool(reader);
}

/** [deployment_rule] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_deployment_rule(outrigger_reader_t *reader, outrigger_deployment_rule_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_DEPLOYMENT_RULE_BURIED:
        return outrigger_get_u32(reader, &out->as.buried.height);
    case OUTRIGGER_DEPLOYMENT_RULE_SIGNALLED:
        return outrigger_get_signalled_deployment(reader, &out->as.signalled.progress);
    default:
        return outrigger_fail(reader);
    }
}

/** Goes on behind [deployment_rule]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_deployment_rule(outrigger_reader_t *reader)
{
    uint8_t tag = 0;
    if (!outrigger_get_u8(reader, &tag)) {
        return false;
    }
    switch (tag) {
    case OUTRIGGER_DEPLOYMENT_RULE_BURIED:
        return outrigger_skip(reader, 4);
    case OUTRIGGER_DEPLOYMENT_RULE_SIGNALLED:
        return outrigger_skip_signalled_deployment(reader);
    default:
        return outrigger_fail(reader);
    }
}

/** [deployment] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_deployment(outrigger_reader_t *reader, outrigger_deployment_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->name)
        && outrigger_get_deployment_rule(reader, &out->rule);
}

/** Goes on behind [deployment]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_deployment(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip_deployment_rule(reader);
}

/**
 * [list of deployment] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_deployment(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_deployment(reader);
    }
    return outrigger_end_list(reader, out);
}

/**
 * [optional list of deployment] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_optional_list_of_deployment(
    outrigger_reader_t *reader, outrigger_optional_list_of_deployment_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_list_of_deployment(reader, &out->value));
}

/** [mempool_info] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_mempool_info(outrigger_reader_t *reader, outrigger_mempool_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u64(reader, &out->transactions)
        && outrigger_get_u64(reader, &out->virtual_size)
        && outrigger_get_u64(reader, &out->usage)
        && outrigger_get_u64(reader, &out->total_fee)
        && outrigger_get_u64(reader, &out->max_usage)
        && outrigger_get_u64(reader, &out->min_feerate)
        && outrigger_get_u64(reader, &out->relay_feerate)
        && outrigger_get_u64(reader, &out->incremental_feerate)
        && outrigger_get_u64(reader, &out->sequence)
        && ((!reader->failed && reader->left == 0) || outrigger_get_u64(reader, &out->moves))
        && ((!reader->failed && reader->left == 0) || outrigger_get_u64(reader, &out->unbroadcast));
}

/** [list of hash] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_hash(outrigger_reader_t *reader, outrigger_list_t *out)
{
    return outrigger_get_list_of_fixed(reader, 32, out);
}

/** Goes on behind [list of hash]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_list_of_hash(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_hash(reader, &skipped);
}

/** [list of hash] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_hash(outrigger_writer_t *writer, const outrigger_hash_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_hash(writer, &value[at]);
    }
}

/** [mempool_entry] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_mempool_entry(outrigger_reader_t *reader, outrigger_mempool_entry_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_hash(reader, &out->txid)
        && outrigger_get_hash(reader, &out->wtxid)
        && outrigger_get_u64(reader, &out->weight)
        && outrigger_get_u64(reader, &out->virtual_size)
        && outrigger_get_u64(reader, &out->fee)
        && outrigger_get_i64(reader, &out->modified_fee)
        && outrigger_get_u64(reader, &out->time)
        && outrigger_get_u32(reader, &out->height)
        && outrigger_get_u64(reader, &out->ancestor_count)
        && outrigger_get_u64(reader, &out->ancestor_size)
        && outrigger_get_i64(reader, &out->ancestor_fees)
        && outrigger_get_u64(reader, &out->descendant_count)
        && outrigger_get_u64(reader, &out->descendant_size)
        && outrigger_get_i64(reader, &out->descendant_fees)
        && outrigger_get_list_of_hash(reader, &out->depends)
        && outrigger_get_list_of_hash(reader, &out->spent_by)
        && outrigger_get_bool(reader, &out->replaceable);
}

/** Goes on behind [mempool_entry]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_mempool_entry(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 32)
        && outrigger_skip(reader, 32)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 4)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip_list_of_hash(reader)
        && outrigger_skip_list_of_hash(reader)
        && outrigger_skip(reader, 1);
}

/**
 * [optional mempool_entry] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_optional_mempool_entry(
    outrigger_reader_t *reader, outrigger_optional_mempool_entry_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_mempool_entry(reader, &out->value));
}

/**
 * Goes on behind [optional mempool_entry]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline bool outrigger_skip_optional_mempool_entry(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_mempool_entry(reader));
}

/**
 * [list of optional mempool_entry] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the
 * reader's bytes.
 */
static inline bool outrigger_get_list_of_optional_mempool_entry(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_optional_mempool_entry(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [raw_transaction] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_raw_transaction(outrigger_reader_t *reader, outrigger_raw_transaction_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->raw);
}

/** Goes on behind [raw_transaction]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_raw_transaction(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader);
}

/**
 * [optional raw_transaction] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_optional_raw_transaction(
    outrigger_reader_t *reader, outrigger_optional_raw_transaction_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_raw_transaction(reader, &out->value));
}

/**
 * Goes on behind [optional raw_transaction]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline bool outrigger_skip_optional_raw_transaction(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_raw_transaction(reader));
}

/**
 * [list of optional raw_transaction] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the
 * reader's bytes.
 */
static inline bool outrigger_get_list_of_optional_raw_transaction(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_optional_raw_transaction(reader);
    }
    return outrigger_end_list(reader, out);
}

/**
 * [list of optional hash] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_optional_hash(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_optional_hash(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [admission] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_admission(outrigger_reader_t *reader, outrigger_admission_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_ADMISSION_MISSING_INPUTS:
    case OUTRIGGER_ADMISSION_ALREADY_IN_CHAIN:
    case OUTRIGGER_ADMISSION_UNDECODABLE:
        return true;
    case OUTRIGGER_ADMISSION_ACCEPTED:
        return outrigger_get_hash(reader, &out->as.accepted.txid)
            && outrigger_get_hash(reader, &out->as.accepted.wtxid)
            && outrigger_get_u64(reader, &out->as.accepted.virtual_size)
            && outrigger_get_u64(reader, &out->as.accepted.fee);
    case OUTRIGGER_ADMISSION_KNOWN:
        return outrigger_get_hash(reader, &out->as.known.txid);
    case OUTRIGGER_ADMISSION_REJECTED:
        return outrigger_get_bytes(reader, &out->as.rejected.reason)
            && outrigger_get_bytes(reader, &out->as.rejected.detail);
    case OUTRIGGER_ADMISSION_FEE_TOO_HIGH:
        return outrigger_get_u64(reader, &out->as.fee_too_high.fee);
    default:
        return outrigger_fail(reader);
    }
}

/** [list of u32] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_u32(outrigger_reader_t *reader, outrigger_list_t *out)
{
    return outrigger_get_list_of_fixed(reader, 4, out);
}

/** Goes on behind [list of u32]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_list_of_u32(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_u32(reader, &skipped);
}

/** [list of u32] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_u32(outrigger_writer_t *writer, const uint32_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_u32(writer, value[at]);
    }
}

/** [selected] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_selected(outrigger_reader_t *reader, outrigger_selected_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->raw)
        && outrigger_get_hash(reader, &out->txid)
        && outrigger_get_hash(reader, &out->wtxid)
        && outrigger_get_u64(reader, &out->fee)
        && outrigger_get_u64(reader, &out->sigops)
        && outrigger_get_u64(reader, &out->weight)
        && outrigger_get_list_of_u32(reader, &out->depends);
}

/** Goes on behind [selected]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_selected(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 32)
        && outrigger_skip(reader, 32)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip_list_of_u32(reader);
}

/** [list of selected] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_selected(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_selected(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [candidate] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_candidate(outrigger_reader_t *reader, outrigger_candidate_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u64(reader, &out->version)
        && outrigger_get_next_block(reader, &out->next)
        && outrigger_get_list_of_selected(reader, &out->transactions)
        && outrigger_get_u64(reader, &out->fees)
        && outrigger_get_u64(reader, &out->sequence);
}

/**
 * [optional candidate] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_optional_candidate(outrigger_reader_t *reader, outrigger_optional_candidate_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_candidate(reader, &out->value));
}

/** [optional i64] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_i64(outrigger_reader_t *reader, outrigger_optional_i64_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_i64(reader, &out->value));
}

/** Goes on behind [optional i64]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_i64(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip(reader, 8));
}

/** [prioritised] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_prioritised(outrigger_reader_t *reader, outrigger_prioritised_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_hash(reader, &out->txid)
        && outrigger_get_i64(reader, &out->fee_delta)
        && outrigger_get_optional_i64(reader, &out->modified_fee);
}

/** Goes on behind [prioritised]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_prioritised(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 32)
        && outrigger_skip(reader, 8)
        && outrigger_skip_optional_i64(reader);
}

/**
 * [list of prioritised] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_prioritised(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_prioritised(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [optional bool] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_bool(outrigger_reader_t *reader, outrigger_optional_bool_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_bool(reader, &out->value));
}

/** Goes on behind [optional bool]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_bool(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip(reader, 1));
}

/** [optional bool] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_optional_bool(outrigger_writer_t *writer, const outrigger_optional_bool_t *value)
{
    bool present = value != NULL && value->present;
    outrigger_put_bool(writer, present);
    if (present) {
        outrigger_put_bool(writer, value->value);
    }
}

/** [create_options] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_create_options(outrigger_writer_t *writer, const outrigger_create_options_t *value)
{
    outrigger_put_bytes(writer, value->name);
    outrigger_put_bool(writer, value->disable_private_keys);
    outrigger_put_bool(writer, value->blank);
    outrigger_put_bytes(writer, value->passphrase);
    outrigger_put_bool(writer, value->avoid_reuse);
    outrigger_put_optional_bool(writer, &value->descriptors);
    outrigger_put_optional_bool(writer, &value->load_on_startup);
}

/** [synced] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_synced(outrigger_reader_t *reader, outrigger_synced_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_hash(reader, &out->hash)
        && outrigger_get_u32(reader, &out->height)
        && outrigger_get_u32(reader, &out->time)
        && outrigger_get_u32(reader, &out->median_time);
}

/** [wallet_kind] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_wallet_kind(outrigger_reader_t *reader, outrigger_wallet_kind_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, out)) {
        return false;
    }
    switch (*out) {
    case OUTRIGGER_WALLET_KIND_BOTH:
    case OUTRIGGER_WALLET_KIND_DESCRIPTORS:
    case OUTRIGGER_WALLET_KIND_LEGACY:
        return true;
    default:
        return outrigger_fail(reader);
    }
}

/** [rescan_progress] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_rescan_progress(outrigger_reader_t *reader, outrigger_rescan_progress_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u64(reader, &out->duration)
        && outrigger_get_u32(reader, &out->millionths);
}

/** [optional rescan_progress] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_rescan_progress(
    outrigger_reader_t *reader, outrigger_optional_rescan_progress_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_rescan_progress(reader, &out->value));
}

/** [address_type] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_address_type(outrigger_reader_t *reader, outrigger_address_type_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, out)) {
        return false;
    }
    switch (*out) {
    case OUTRIGGER_ADDRESS_TYPE_LEGACY:
    case OUTRIGGER_ADDRESS_TYPE_P2SH_SEGWIT:
    case OUTRIGGER_ADDRESS_TYPE_BECH32:
    case OUTRIGGER_ADDRESS_TYPE_BECH32M:
        return true;
    default:
        return outrigger_fail(reader);
    }
}

/** [address_type] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_address_type(outrigger_writer_t *writer, outrigger_address_type_t value)
{
    outrigger_put_u8(writer, value);
}

/** [address_source] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_address_source(outrigger_reader_t *reader, outrigger_address_source_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_address_type(reader, &out->kind)
        && outrigger_get_bool(reader, &out->internal)
        && outrigger_get_bool(reader, &out->available);
}

/**
 * [list of address_source] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_address_source(outrigger_reader_t *reader, outrigger_list_t *out)
{
    return outrigger_get_list_of_fixed(reader, 3, out);
}

/** [wallet_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_wallet_info(outrigger_reader_t *reader, outrigger_wallet_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->name)
        && outrigger_get_synced(reader, &out->synced)
        && outrigger_get_wallet_kind(reader, &out->kind)
        && outrigger_get_bool(reader, &out->private_keys_enabled)
        && outrigger_get_bool(reader, &out->blank)
        && outrigger_get_bool(reader, &out->avoid_reuse)
        && outrigger_get_bool(reader, &out->encrypted)
        && outrigger_get_bool(reader, &out->locked)
        && outrigger_get_u64(reader, &out->unlocked_until)
        && outrigger_get_optional_rescan_progress(reader, &out->rescan)
        && outrigger_get_u64(reader, &out->transactions)
        && outrigger_get_u64(reader, &out->keypool_external)
        && outrigger_get_u64(reader, &out->keypool_internal)
        && outrigger_get_u64(reader, &out->birth_time)
        && outrigger_get_bool(reader, &out->backup_needed)
        && outrigger_get_u64(reader, &out->last_backup)
        && ((!reader->failed && reader->left == 0) || outrigger_get_u32(reader, &out->keypool))
        && ((!reader->failed && reader->left == 0) || outrigger_get_list_of_address_source(reader, &out->sources))
        && ((!reader->failed && reader->left == 0) || outrigger_get_u64(reader, &out->keypool_oldest))
        && ((!reader->failed && reader->left == 0) || outrigger_get_list_of_bytes(reader, &out->warnings));
}

/** [ownership] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_ownership(outrigger_reader_t *reader, outrigger_ownership_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, out)) {
        return false;
    }
    switch (*out) {
    case OUTRIGGER_OWNERSHIP_NONE:
    case OUTRIGGER_OWNERSHIP_WATCH_ONLY:
    case OUTRIGGER_OWNERSHIP_SPENDABLE:
        return true;
    default:
        return outrigger_fail(reader);
    }
}

/** [optional array 32] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_array32(outrigger_reader_t *reader, outrigger_optional_array32_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_array32(reader, &out->value));
}

/** Goes on behind [optional array 32]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_array32(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip(reader, 32));
}

/** [optional array 32] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_optional_array32(
    outrigger_writer_t *writer, const outrigger_optional_array32_t *value)
{
    bool present = value != NULL && value->present;
    outrigger_put_bool(writer, present);
    if (present) {
        outrigger_put_array32(writer, &value->value);
    }
}

/** [tap_leaf] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_tap_leaf(outrigger_reader_t *reader, outrigger_tap_leaf_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->script)
        && outrigger_get_bytes(reader, &out->control_block);
}

/** Goes on behind [tap_leaf]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_tap_leaf(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip_bytes(reader);
}

/** [list of tap_leaf] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_tap_leaf(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_tap_leaf(reader);
    }
    return outrigger_end_list(reader, out);
}

/** Goes on behind [list of tap_leaf]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_list_of_tap_leaf(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_tap_leaf(reader, &skipped);
}

/** [taproot_data] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_taproot_data(outrigger_reader_t *reader, outrigger_taproot_data_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_array32(reader, &out->internal_key)
        && outrigger_get_optional_array32(reader, &out->merkle_root)
        && outrigger_get_list_of_tap_leaf(reader, &out->leaves);
}

/** Goes on behind [taproot_data]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_taproot_data(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 32)
        && outrigger_skip_optional_array32(reader)
        && outrigger_skip_list_of_tap_leaf(reader);
}

/**
 * [optional taproot_data] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_optional_taproot_data(
    outrigger_reader_t *reader, outrigger_optional_taproot_data_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_taproot_data(reader, &out->value));
}

/**
 * Goes on behind [optional taproot_data]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline bool outrigger_skip_optional_taproot_data(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_taproot_data(reader));
}

/** [solving_data] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_solving_data(outrigger_reader_t *reader, outrigger_solving_data_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_bytes(reader, &out->scripts)
        && outrigger_get_list_of_bytes(reader, &out->public_keys)
        && outrigger_get_optional_taproot_data(reader, &out->taproot);
}

/** Goes on behind [solving_data]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_solving_data(outrigger_reader_t *reader)
{
    return outrigger_skip_list_of_bytes(reader)
        && outrigger_skip_list_of_bytes(reader)
        && outrigger_skip_optional_taproot_data(reader);
}

/** [array 4] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_array4(outrigger_reader_t *reader, outrigger_array4_t *out)
{
    return outrigger_get_fixed(reader, out->bytes, sizeof out->bytes);
}

/** [array 4] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_array4(outrigger_writer_t *writer, const outrigger_array4_t *value)
{
    outrigger_append(writer, value->bytes, sizeof value->bytes);
}

/** [key_origin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_key_origin(outrigger_reader_t *reader, outrigger_key_origin_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->public_key)
        && outrigger_get_array4(reader, &out->fingerprint)
        && outrigger_get_bytes(reader, &out->path);
}

/** Goes on behind [key_origin]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_key_origin(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 4)
        && outrigger_skip_bytes(reader);
}

/** [key_origin] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_key_origin(outrigger_writer_t *writer, const outrigger_key_origin_t *value)
{
    outrigger_put_bytes(writer, value->public_key);
    outrigger_put_array4(writer, &value->fingerprint);
    outrigger_put_bytes(writer, value->path);
}

/**
 * [list of key_origin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_key_origin(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_key_origin(reader);
    }
    return outrigger_end_list(reader, out);
}

/** Goes on behind [list of key_origin]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_list_of_key_origin(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_key_origin(reader, &skipped);
}

/** [list of key_origin] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_key_origin(
    outrigger_writer_t *writer, const outrigger_key_origin_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_key_origin(writer, &value[at]);
    }
}

/** [script_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_script_info(outrigger_reader_t *reader, outrigger_script_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_ownership(reader, &out->ownership)
        && outrigger_get_bool(reader, &out->solvable)
        && outrigger_get_optional_bytes(reader, &out->label)
        && outrigger_get_bool(reader, &out->change)
        && outrigger_get_bool(reader, &out->internal)
        && outrigger_get_u64(reader, &out->timestamp)
        && outrigger_get_bytes(reader, &out->descriptor)
        && outrigger_get_list_of_bytes(reader, &out->parents)
        && outrigger_get_solving_data(reader, &out->solving)
        && outrigger_get_list_of_key_origin(reader, &out->origins);
}

/** Goes on behind [script_info]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_script_info(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1)
        && outrigger_skip_optional_bytes(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 8)
        && outrigger_skip_bytes(reader)
        && outrigger_skip_list_of_bytes(reader)
        && outrigger_skip_solving_data(reader)
        && outrigger_skip_list_of_key_origin(reader);
}

/**
 * [optional script_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_optional_script_info(
    outrigger_reader_t *reader, outrigger_optional_script_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_script_info(reader, &out->value));
}

/** Goes on behind [optional script_info]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_script_info(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_script_info(reader));
}

/**
 * [list of optional script_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_optional_script_info(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_optional_script_info(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [tx_state] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_tx_state(outrigger_reader_t *reader, outrigger_tx_state_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_TX_STATE_IN_MEMPOOL:
    case OUTRIGGER_TX_STATE_INACTIVE:
    case OUTRIGGER_TX_STATE_ABANDONED:
        return true;
    case OUTRIGGER_TX_STATE_CONFIRMED:
        return outrigger_get_hash(reader, &out->as.confirmed.block)
            && outrigger_get_u32(reader, &out->as.confirmed.height)
            && outrigger_get_u32(reader, &out->as.confirmed.index)
            && outrigger_get_u32(reader, &out->as.confirmed.time);
    case OUTRIGGER_TX_STATE_CONFLICTED:
        return outrigger_get_hash(reader, &out->as.conflicted.block)
            && outrigger_get_u32(reader, &out->as.conflicted.height);
    default:
        return outrigger_fail(reader);
    }
}

/** Goes on behind [tx_state]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_tx_state(outrigger_reader_t *reader)
{
    uint8_t tag = 0;
    if (!outrigger_get_u8(reader, &tag)) {
        return false;
    }
    switch (tag) {
    case OUTRIGGER_TX_STATE_IN_MEMPOOL:
    case OUTRIGGER_TX_STATE_INACTIVE:
    case OUTRIGGER_TX_STATE_ABANDONED:
        return true;
    case OUTRIGGER_TX_STATE_CONFIRMED:
        return outrigger_skip(reader, 32)
            && outrigger_skip(reader, 4)
            && outrigger_skip(reader, 4)
            && outrigger_skip(reader, 4);
    case OUTRIGGER_TX_STATE_CONFLICTED:
        return outrigger_skip(reader, 32)
            && outrigger_skip(reader, 4);
    default:
        return outrigger_fail(reader);
    }
}

/** [(bytes, bytes)] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_tuple_of_bytes_and_bytes(
    outrigger_reader_t *reader, outrigger_tuple_of_bytes_and_bytes_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->first)
        && outrigger_get_bytes(reader, &out->second);
}

/** Goes on behind [(bytes, bytes)]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_tuple_of_bytes_and_bytes(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip_bytes(reader);
}

/**
 * [list of (bytes, bytes)] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_tuple_of_bytes_and_bytes(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_tuple_of_bytes_and_bytes(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [wallet_output] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_wallet_output(outrigger_reader_t *reader, outrigger_wallet_output_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u64(reader, &out->value)
        && outrigger_get_bytes(reader, &out->script)
        && outrigger_get_ownership(reader, &out->ownership)
        && outrigger_get_bool(reader, &out->change)
        && outrigger_get_optional_bytes(reader, &out->label)
        && outrigger_get_list_of_u32(reader, &out->descriptors);
}

/** Goes on behind [wallet_output]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_wallet_output(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 8)
        && outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1)
        && outrigger_skip_optional_bytes(reader)
        && outrigger_skip_list_of_u32(reader);
}

/**
 * [list of wallet_output] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_wallet_output(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_wallet_output(reader);
    }
    return outrigger_end_list(reader, out);
}

/**
 * [wallet_transaction] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_wallet_transaction(outrigger_reader_t *reader, outrigger_wallet_transaction_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->contested)
        && outrigger_get_tx_state(reader, &out->state)
        && outrigger_get_hash(reader, &out->txid)
        && outrigger_get_hash(reader, &out->wtxid)
        && outrigger_get_u64(reader, &out->arrival)
        && outrigger_get_u64(reader, &out->time)
        && outrigger_get_u64(reader, &out->time_received)
        && outrigger_get_bool(reader, &out->coinbase)
        && outrigger_get_bool(reader, &out->signals)
        && outrigger_get_u32(reader, &out->lock_time)
        && outrigger_get_u64(reader, &out->total_output)
        && outrigger_get_u64(reader, &out->debit_spendable)
        && outrigger_get_u64(reader, &out->debit_watch_only)
        && outrigger_get_list_of_tuple_of_bytes_and_bytes(reader, &out->metadata)
        && outrigger_get_list_of_out_point(reader, &out->inputs)
        && outrigger_get_list_of_wallet_output(reader, &out->outputs);
}

/**
 * [framed wallet_transaction] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_framed_wallet_transaction(
    outrigger_reader_t *reader, outrigger_wallet_transaction_t *out)
{
    memset(out, 0, sizeof *out);
    outrigger_bytes_t frame;
    outrigger_reader_t framed;
    if (!outrigger_get_bytes(reader, &frame)) {
        return false;
    }
    framed = outrigger_read(frame);
    return outrigger_get_wallet_transaction(&framed, out) || outrigger_fail(reader);
}

/**
 * Goes on behind [framed wallet_transaction]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is
 * kept.
 */
static inline bool outrigger_skip_framed_wallet_transaction(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader);
}

/** [replaceable] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_replaceable(outrigger_reader_t *reader, outrigger_replaceable_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, out)) {
        return false;
    }
    switch (*out) {
    case OUTRIGGER_REPLACEABLE_NO:
    case OUTRIGGER_REPLACEABLE_YES:
    case OUTRIGGER_REPLACEABLE_UNKNOWN:
        return true;
    default:
        return outrigger_fail(reader);
    }
}

/** [outlook] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_outlook(outrigger_reader_t *reader, outrigger_outlook_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_hash(reader, &out->conflicts)
        && outrigger_get_list_of_hash(reader, &out->mempool_conflicts)
        && outrigger_get_bool(reader, &out->trusted)
        && outrigger_get_replaceable(reader, &out->replaceable);
}

/** Goes on behind [outlook]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_outlook(outrigger_reader_t *reader)
{
    return outrigger_skip_list_of_hash(reader)
        && outrigger_skip_list_of_hash(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1);
}

/** [optional outlook] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_optional_outlook(outrigger_reader_t *reader, outrigger_optional_outlook_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_outlook(reader, &out->value));
}

/** Goes on behind [optional outlook]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_outlook(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_outlook(reader));
}

/** [history_row] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_history_row(outrigger_reader_t *reader, outrigger_history_row_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_framed_wallet_transaction(reader, &out->transaction)
        && outrigger_get_optional_outlook(reader, &out->outlook);
}

/** Goes on behind [history_row]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_history_row(outrigger_reader_t *reader)
{
    return outrigger_skip_framed_wallet_transaction(reader)
        && outrigger_skip_optional_outlook(reader);
}

/**
 * [list of history_row] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_history_row(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_history_row(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [history_batch] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_history_batch(outrigger_reader_t *reader, outrigger_history_batch_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_history_row(reader, &out->rows)
        && outrigger_get_optional_bytes(reader, &out->next);
}

/**
 * [list of optional bytes] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_optional_bytes(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_optional_bytes(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [history_range] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_history_range(outrigger_writer_t *writer, const outrigger_history_range_t *value)
{
    outrigger_put_u8(writer, value->tag);
    switch (value->tag) {
    case OUTRIGGER_HISTORY_RANGE_UNCONFIRMED:
    case OUTRIGGER_HISTORY_RANGE_ALL:
        break;
    case OUTRIGGER_HISTORY_RANGE_CONFIRMED:
        outrigger_put_u32(writer, value->as.confirmed.from_height);
        break;
    case OUTRIGGER_HISTORY_RANGE_CONFLICTED:
        outrigger_put_u32(writer, value->as.conflicted.from_height);
        break;
    default:
        writer->failed = true;
        break;
    }
}

/** [history_query] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_history_query(outrigger_writer_t *writer, const outrigger_history_query_t *value)
{
    outrigger_put_history_range(writer, &value->range);
    outrigger_put_bool(writer, value->reverse);
    outrigger_put_optional_bytes(writer, &value->after);
    outrigger_put_u32(writer, value->limit);
}

/** [wallet_coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_wallet_coin(outrigger_reader_t *reader, outrigger_wallet_coin_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_out_point(reader, &out->outpoint)
        && outrigger_get_u64(reader, &out->value)
        && outrigger_get_bytes(reader, &out->script)
        && outrigger_get_tx_state(reader, &out->state)
        && outrigger_get_bool(reader, &out->coinbase)
        && outrigger_get_ownership(reader, &out->ownership)
        && outrigger_get_bool(reader, &out->change)
        && outrigger_get_optional_bytes(reader, &out->label)
        && outrigger_get_bool(reader, &out->trusted)
        && outrigger_get_bool(reader, &out->from_us);
}

/** Goes on behind [wallet_coin]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_wallet_coin(outrigger_reader_t *reader)
{
    return outrigger_skip(reader, 36)
        && outrigger_skip(reader, 8)
        && outrigger_skip_bytes(reader)
        && outrigger_skip_tx_state(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1)
        && outrigger_skip_optional_bytes(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1);
}

/**
 * [list of wallet_coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_wallet_coin(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_wallet_coin(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [coin_batch] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_coin_batch(outrigger_reader_t *reader, outrigger_coin_batch_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_wallet_coin(reader, &out->coins)
        && outrigger_get_optional_bytes(reader, &out->next);
}

/** [(u32, u32)] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_tuple_of_u32_and_u32(
    outrigger_reader_t *reader, outrigger_tuple_of_u32_and_u32_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u32(reader, &out->first)
        && outrigger_get_u32(reader, &out->second);
}

/** [(u32, u32)] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_tuple_of_u32_and_u32(
    outrigger_writer_t *writer, const outrigger_tuple_of_u32_and_u32_t *value)
{
    outrigger_put_u32(writer, value->first);
    outrigger_put_u32(writer, value->second);
}

/** [optional (u32, u32)] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_tuple_of_u32_and_u32(
    outrigger_reader_t *reader, outrigger_optional_tuple_of_u32_and_u32_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_tuple_of_u32_and_u32(reader, &out->value));
}

/** Goes on behind [optional (u32, u32)]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_optional_tuple_of_u32_and_u32(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip(reader, 8));
}

/** [optional (u32, u32)] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_optional_tuple_of_u32_and_u32(
    outrigger_writer_t *writer, const outrigger_optional_tuple_of_u32_and_u32_t *value)
{
    bool present = value != NULL && value->present;
    outrigger_put_bool(writer, present);
    if (present) {
        outrigger_put_tuple_of_u32_and_u32(writer, &value->value);
    }
}

/** [descriptor_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_descriptor_info(outrigger_reader_t *reader, outrigger_descriptor_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->text)
        && outrigger_get_u64(reader, &out->timestamp)
        && outrigger_get_bool(reader, &out->active)
        && outrigger_get_optional_bool(reader, &out->internal)
        && outrigger_get_optional_tuple_of_u32_and_u32(reader, &out->range)
        && outrigger_get_u32(reader, &out->next_index);
}

/** Goes on behind [descriptor_info]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_descriptor_info(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 1)
        && outrigger_skip_optional_bool(reader)
        && outrigger_skip_optional_tuple_of_u32_and_u32(reader)
        && outrigger_skip(reader, 4);
}

/**
 * [list of descriptor_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_descriptor_info(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_descriptor_info(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [import_outcome] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_import_outcome(outrigger_reader_t *reader, outrigger_import_outcome_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_IMPORT_OUTCOME_PRIVATE_KEYS_DISABLED:
    case OUTRIGGER_IMPORT_OUTCOME_NOT_EXPANDABLE:
    case OUTRIGGER_IMPORT_OUTCOME_NO_PRIVATE_KEYS:
    case OUTRIGGER_IMPORT_OUTCOME_NOT_STORED:
        return true;
    case OUTRIGGER_IMPORT_OUTCOME_IMPORTED:
        return outrigger_get_bool(reader, &out->as.imported.missing_private_keys)
            && outrigger_get_bool(reader, &out->as.imported.unknown_output_type);
    case OUTRIGGER_IMPORT_OUTCOME_ALREADY_OWNED:
        return outrigger_get_bytes(reader, &out->as.already_owned.script);
    case OUTRIGGER_IMPORT_OUTCOME_RANGE_SHRINKS:
        return outrigger_get_u32(reader, &out->as.range_shrinks.begin)
            && outrigger_get_u32(reader, &out->as.range_shrinks.end);
    case OUTRIGGER_IMPORT_OUTCOME_BAD_DESCRIPTOR:
        return outrigger_get_bytes(reader, &out->as.bad_descriptor.reason);
    default:
        return outrigger_fail(reader);
    }
}

/** Goes on behind [import_outcome]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_import_outcome(outrigger_reader_t *reader)
{
    uint8_t tag = 0;
    if (!outrigger_get_u8(reader, &tag)) {
        return false;
    }
    switch (tag) {
    case OUTRIGGER_IMPORT_OUTCOME_PRIVATE_KEYS_DISABLED:
    case OUTRIGGER_IMPORT_OUTCOME_NOT_EXPANDABLE:
    case OUTRIGGER_IMPORT_OUTCOME_NO_PRIVATE_KEYS:
    case OUTRIGGER_IMPORT_OUTCOME_NOT_STORED:
        return true;
    case OUTRIGGER_IMPORT_OUTCOME_IMPORTED:
        return outrigger_skip(reader, 1)
            && outrigger_skip(reader, 1);
    case OUTRIGGER_IMPORT_OUTCOME_ALREADY_OWNED:
        return outrigger_skip_bytes(reader);
    case OUTRIGGER_IMPORT_OUTCOME_RANGE_SHRINKS:
        return outrigger_skip(reader, 4)
            && outrigger_skip(reader, 4);
    case OUTRIGGER_IMPORT_OUTCOME_BAD_DESCRIPTOR:
        return outrigger_skip_bytes(reader);
    default:
        return outrigger_fail(reader);
    }
}

/**
 * [list of import_outcome] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_import_outcome(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_import_outcome(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [descriptor_import] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_descriptor_import(
    outrigger_writer_t *writer, const outrigger_descriptor_import_t *value)
{
    outrigger_put_bytes(writer, value->text);
    outrigger_put_optional_tuple_of_u32_and_u32(writer, &value->range);
    outrigger_put_optional_u32(writer, &value->next_index);
    outrigger_put_bool(writer, value->active);
    outrigger_put_optional_bool(writer, &value->internal);
    outrigger_put_optional_bytes(writer, &value->label);
    outrigger_put_u64(writer, value->timestamp);
}

/** [keys_import] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_keys_import(outrigger_writer_t *writer, const outrigger_keys_import_t *value)
{
    outrigger_put_list_of_bytes(writer, value->script_pubkeys, value->script_pubkeys_count);
    outrigger_put_list_of_bytes(writer, value->scripts, value->scripts_count);
    outrigger_put_list_of_bytes(writer, value->private_keys, value->private_keys_count);
    outrigger_put_list_of_bytes(writer, value->public_keys, value->public_keys_count);
    outrigger_put_list_of_key_origin(writer, value->origins, value->origins_count);
    outrigger_put_bool(writer, value->solving_data);
    outrigger_put_bool(writer, value->internal);
    outrigger_put_bytes(writer, value->label);
    outrigger_put_bool(writer, value->keypool);
    outrigger_put_u64(writer, value->timestamp);
}

/** [list of keys_import] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_keys_import(
    outrigger_writer_t *writer, const outrigger_keys_import_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_keys_import(writer, &value[at]);
    }
}

/** [import] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_import(outrigger_writer_t *writer, const outrigger_import_t *value)
{
    outrigger_put_u8(writer, value->tag);
    switch (value->tag) {
    case OUTRIGGER_IMPORT_DESCRIPTOR:
        outrigger_put_descriptor_import(writer, &value->as.descriptor.descriptor);
        break;
    case OUTRIGGER_IMPORT_KEYS:
        outrigger_put_keys_import(writer, &value->as.keys.keys);
        break;
    case OUTRIGGER_IMPORT_PARTS:
        outrigger_put_list_of_keys_import(writer, value->as.parts.parts, value->as.parts.parts_count);
        break;
    default:
        writer->failed = true;
        break;
    }
}

/** [list of import] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_import(
    outrigger_writer_t *writer, const outrigger_import_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_import(writer, &value[at]);
    }
}

/** [labelled_script] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_labelled_script(outrigger_reader_t *reader, outrigger_labelled_script_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->script)
        && outrigger_get_bytes(reader, &out->label)
        && outrigger_get_ownership(reader, &out->ownership);
}

/** Goes on behind [labelled_script]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_labelled_script(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 1);
}

/**
 * [list of labelled_script] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_labelled_script(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_labelled_script(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [label_batch] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_label_batch(outrigger_reader_t *reader, outrigger_label_batch_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_labelled_script(reader, &out->entries)
        && outrigger_get_optional_bytes(reader, &out->next)
        && ((!reader->failed && reader->left == 0) || outrigger_get_list_of_bytes(reader, &out->sending));
}

/** [scheme] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_scheme(outrigger_writer_t *writer, const outrigger_scheme_t *value)
{
    outrigger_put_u8(writer, value->tag);
    switch (value->tag) {
    case OUTRIGGER_SCHEME_ECDSA:
    case OUTRIGGER_SCHEME_SCHNORR:
        break;
    case OUTRIGGER_SCHEME_SCHNORR_TWEAKED:
        outrigger_put_optional_array32(writer, &value->as.schnorr_tweaked.merkle_root);
        break;
    default:
        writer->failed = true;
        break;
    }
}

/** [sign_request] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_sign_request(outrigger_writer_t *writer, const outrigger_sign_request_t *value)
{
    outrigger_put_bytes(writer, value->public_key);
    outrigger_put_array32(writer, &value->digest);
    outrigger_put_scheme(writer, &value->scheme);
}

/** [list of sign_request] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_sign_request(
    outrigger_writer_t *writer, const outrigger_sign_request_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_sign_request(writer, &value[at]);
    }
}

/** [sign_batch] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_sign_batch(outrigger_writer_t *writer, const outrigger_sign_batch_t *value)
{
    outrigger_put_list_of_bytes(writer, value->scripts, value->scripts_count);
    outrigger_put_list_of_sign_request(writer, value->requests, value->requests_count);
}

/** [level] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_level(outrigger_writer_t *writer, outrigger_level_t value)
{
    outrigger_put_u8(writer, value);
}

/** [rescan_outcome] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_rescan_outcome(outrigger_reader_t *reader, outrigger_rescan_outcome_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_RESCAN_OUTCOME_COMPLETE:
    case OUTRIGGER_RESCAN_OUTCOME_ABORTED:
        return true;
    case OUTRIGGER_RESCAN_OUTCOME_UNREADABLE:
        return outrigger_get_u32(reader, &out->as.unreadable.block_time);
    default:
        return outrigger_fail(reader);
    }
}

/** [event] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_event(outrigger_reader_t *reader, outrigger_event_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_EVENT_SHUTTING_DOWN:
        return true;
    case OUTRIGGER_EVENT_TIP_CHANGED:
        return outrigger_get_hash(reader, &out->as.tip_changed.hash)
            && outrigger_get_u32(reader, &out->as.tip_changed.height);
    case OUTRIGGER_EVENT_MEMPOOL_CHANGED:
        return outrigger_get_u64(reader, &out->as.mempool_changed.sequence);
    case OUTRIGGER_EVENT_WALLET_TRANSACTION:
        return outrigger_get_bytes(reader, &out->as.wallet_transaction.wallet)
            && outrigger_get_hash(reader, &out->as.wallet_transaction.txid);
    case OUTRIGGER_EVENT_RESCAN_FINISHED:
        return outrigger_get_bytes(reader, &out->as.rescan_finished.wallet)
            && outrigger_get_u64(reader, &out->as.rescan_finished.rescan)
            && outrigger_get_rescan_outcome(reader, &out->as.rescan_finished.outcome);
    case OUTRIGGER_EVENT_WALLET_LOCK_CHANGED:
        return outrigger_get_bytes(reader, &out->as.wallet_lock_changed.wallet)
            && outrigger_get_bool(reader, &out->as.wallet_lock_changed.locked);
    default:
        return outrigger_fail(reader);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service chain/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The chain. Reads within a call see one snapshot of it. */
#define OUTRIGGER_SERVICE_CHAIN "chain/1"

/** The positions of the functions of `chain/1` in its table. */
enum {
    OUTRIGGER_FN_CHAIN_TIP = 0,
    OUTRIGGER_FN_CHAIN_INFO = 1,
    OUTRIGGER_FN_CHAIN_BLOCK_INFO = 2,
    OUTRIGGER_FN_CHAIN_BLOCK = 3,
    OUTRIGGER_FN_CHAIN_SPENT_OUTPUTS = 4,
    OUTRIGGER_FN_CHAIN_TRANSACTION = 5,
    OUTRIGGER_FN_CHAIN_COINS = 6,
    OUTRIGGER_FN_CHAIN_FORK_POINT = 7,
    OUTRIGGER_FN_CHAIN_TIPS = 8,
    OUTRIGGER_FN_CHAIN_NEXT_BLOCK = 9,
    OUTRIGGER_FN_CHAIN_TIME = 10,
    OUTRIGGER_FN_CHAIN_CHECK_BLOCK = 11,
    OUTRIGGER_FN_CHAIN_SUBMIT_BLOCK = 12,
    OUTRIGGER_FN_CHAIN_SUBMIT_HEADER = 13,
    OUTRIGGER_FN_CHAIN_INVALIDATE_BLOCK = 14,
    OUTRIGGER_FN_CHAIN_RECONSIDER_BLOCK = 15,
    OUTRIGGER_FN_CHAIN_PRECIOUS_BLOCK = 16,
    OUTRIGGER_FN_CHAIN_SET_MOCK_TIME = 17,
    OUTRIGGER_FN_CHAIN_COINS_AFTER = 18,
    OUTRIGGER_FN_CHAIN_DEPLOYMENTS = 19,
    OUTRIGGER_FN_CHAIN_NETWORK = 20,
};

/**
 * The best block.
 *
 * Request: nothing.
 * Response: [tip].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_chain_tip(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_tip_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_TIP, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_tip(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Which chain this is and where it stands.
 *
 * Request: nothing.
 * Response: [chain_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_info(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_chain_info_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_INFO, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_chain_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * A block's entry in the index; none when it is unknown.
 *
 * Request: block [block_ref].
 * Response: [optional block_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_chain_block_info(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_block_ref_t *block,
    outrigger_owned_bytes_t *response, outrigger_optional_block_info_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    outrigger_put_block_ref(&request, block);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_BLOCK_INFO, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_block_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * A block's serialisation, on any branch; none when it is unknown or only its header is known.
 *
 * Request: hash [hash].
 * Response: [optional bytes].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_block(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *hash, outrigger_owned_bytes_t *response,
    outrigger_optional_bytes_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_hash(&request, hash);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_BLOCK, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * What each transaction of a connected block spent, the coinbase's entry being empty.
 *
 * Request: hash [hash].
 * Response: [optional list of spent_outputs].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_spent_outputs(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *hash, outrigger_owned_bytes_t *response,
    outrigger_optional_list_of_spent_outputs_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_hash(&request, hash);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_SPENT_OUTPUTS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_list_of_spent_outputs(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The confirmed transaction of an id on the best chain.
 *
 * Request: txid [hash].
 * Response: [optional confirmed_transaction].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_transaction(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *txid, outrigger_owned_bytes_t *response,
    outrigger_optional_confirmed_transaction_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_hash(&request, txid);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_TRANSACTION, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_confirmed_transaction(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The unspent outputs of the best chain at these outpoints, in their order.
 *
 * Request: outpoints [list of out_point].
 * Response: [list of optional coin].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_coins(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_out_point_t *outpoints, size_t outpoints_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_out_point(&request, outpoints, outpoints_count);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_COINS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_coin(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The last block that a block and the best chain share; none when the block is unknown.
 *
 * Request: hash [hash].
 * Response: [optional block_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_chain_fork_point(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *hash, outrigger_owned_bytes_t *response,
    outrigger_optional_block_info_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    outrigger_put_hash(&request, hash);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_FORK_POINT, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_block_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The ends of all branches, the best chain's first, then by falling height.
 *
 * Request: nothing.
 * Response: [list of chain_tip].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_tips(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_TIPS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_chain_tip(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * What a block on the tip must and may be.
 *
 * Request: nothing.
 * Response: [next_block].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_next_block(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_next_block_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_NEXT_BLOCK, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_next_block(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The host's time, in seconds: the clock's, or the mocked one.
 *
 * Request: nothing.
 * Response: [u64].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_chain_time(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response, uint64_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_TIME, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_u64(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Judges a block on the tip without its proof of work and without keeping anything (BIP 23 proposal).
 *
 * Request: raw [bytes].
 * Response: [verdict].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_check_block(
    const outrigger_service_t *chain, uint64_t scope, outrigger_bytes_t raw, outrigger_owned_bytes_t *response,
    outrigger_verdict_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, raw);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_CHECK_BLOCK, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_verdict(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Stores a block and, where it makes the best chain, connects it. What is answered valid is on disk.
 *
 * Request: raw [bytes].
 * Response: [verdict].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_submit_block(
    const outrigger_service_t *chain, uint64_t scope, outrigger_bytes_t raw, outrigger_owned_bytes_t *response,
    outrigger_verdict_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, raw);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_SUBMIT_BLOCK, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_verdict(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Stores a header (80 bytes) whose previous block is known.
 *
 * Request: raw [bytes].
 * Response: [verdict].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_submit_header(
    const outrigger_service_t *chain, uint64_t scope, outrigger_bytes_t raw, outrigger_owned_bytes_t *response,
    outrigger_verdict_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, raw);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_SUBMIT_HEADER, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_verdict(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Marks a block and all that builds on it as invalid, and goes to the best chain that remains.
 *
 * Request: hash [hash].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_chain_invalidate_block(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *hash, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_hash(&request, hash);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_INVALIDATE_BLOCK, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Takes back what `invalidate_block` did to a block, its ancestors and descendants.
 *
 * Request: hash [hash].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_chain_reconsider_block(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *hash, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_hash(&request, hash);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_RECONSIDER_BLOCK, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Prefers a block to others of the same work, as if it had come first.
 *
 * Request: hash [hash].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_chain_precious_block(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *hash, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_hash(&request, hash);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_PRECIOUS_BLOCK, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Sets the host's time in seconds; 0 goes back to the clock. Test chains only.
 *
 * Request: seconds [u64].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_chain_set_mock_time(
    const outrigger_service_t *chain, uint64_t scope, uint64_t seconds, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_u64(&request, seconds);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_SET_MOCK_TIME, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * The unspent outputs of the best chain that follow this one, or the first ones, by the bytes of the transaction's id
 * and then by index: at most so many, and fewer where they would make a large answer, but one at least where there is
 * any. Since minor 1.
 *
 * Request: outpoint [optional out_point], limit [u32].
 * Response: [list of unspent_output].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_coins_after(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_optional_out_point_t *outpoint, uint32_t limit,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_optional_out_point(&request, outpoint);
    outrigger_put_u32(&request, limit);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_COINS_AFTER, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_unspent_output(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The changes of the rules as they stand with a block of any branch, in bitcoind's order; none when it is unknown.
 * Since minor 1.
 *
 * Request: hash [hash].
 * Response: [optional list of deployment].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_deployments(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_hash_t *hash, outrigger_owned_bytes_t *response,
    outrigger_optional_list_of_deployment_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_hash(&request, hash);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_DEPLOYMENTS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_list_of_deployment(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The network that the node is on. It never changes, and is answered at once, whatever the node does. Since minor 1.
 *
 * Request: nothing.
 * Response: [text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_network(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_bytes_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_NETWORK, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service mempool/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The unconfirmed transactions. */
#define OUTRIGGER_SERVICE_MEMPOOL "mempool/1"

/** The positions of the functions of `mempool/1` in its table. */
enum {
    OUTRIGGER_FN_MEMPOOL_INFO = 0,
    OUTRIGGER_FN_MEMPOOL_IDS = 1,
    OUTRIGGER_FN_MEMPOOL_ENTRIES = 2,
    OUTRIGGER_FN_MEMPOOL_TRANSACTIONS = 3,
    OUTRIGGER_FN_MEMPOOL_SPENDERS = 4,
    OUTRIGGER_FN_MEMPOOL_SUBMIT = 5,
    OUTRIGGER_FN_MEMPOOL_TRY_SUBMIT = 6,
    OUTRIGGER_FN_MEMPOOL_CANDIDATE = 7,
    OUTRIGGER_FN_MEMPOOL_PRIORITISE = 8,
    OUTRIGGER_FN_MEMPOOL_PRIORITISED = 9,
    OUTRIGGER_FN_MEMPOOL_UNBROADCAST = 10,
    OUTRIGGER_FN_MEMPOOL_FEE_ESTIMATE = 11,
};

/**
 * The mempool as a whole.
 *
 * Request: nothing.
 * Response: [mempool_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_mempool_info(
    const outrigger_service_t *mempool, uint64_t scope, outrigger_owned_bytes_t *response,
    outrigger_mempool_info_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_INFO, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_mempool_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * All ids, in the order they came.
 *
 * Request: nothing.
 * Response: [list of hash].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_ids(
    const outrigger_service_t *mempool, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_IDS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_hash(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The entries of these ids, in their order.
 *
 * Request: txids [list of hash].
 * Response: [list of optional mempool_entry].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_entries(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_hash_t *txids, size_t txids_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_hash(&request, txids, txids_count);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_ENTRIES, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_mempool_entry(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The transactions of these ids, in their order.
 *
 * Request: txids [list of hash].
 * Response: [list of optional raw_transaction].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_transactions(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_hash_t *txids, size_t txids_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_hash(&request, txids, txids_count);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_TRANSACTIONS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_raw_transaction(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The transactions of the mempool that spend these outpoints, in their order.
 *
 * Request: outpoints [list of out_point].
 * Response: [list of optional hash].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_spenders(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_out_point_t *outpoints, size_t outpoints_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_out_point(&request, outpoints, outpoints_count);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_SPENDERS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_hash(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Offers a transaction. `max_feerate` bounds its feerate in satoshi per 1000 virtual bytes, 0 being no bound.
 *
 * Request: raw [bytes], max_feerate [u64].
 * Response: [admission].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_submit(
    const outrigger_service_t *mempool, uint64_t scope, outrigger_bytes_t raw, uint64_t max_feerate,
    outrigger_owned_bytes_t *response, outrigger_admission_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, raw);
    outrigger_put_u64(&request, max_feerate);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_SUBMIT, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_admission(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * As `submit`, keeping nothing.
 *
 * Request: raw [bytes], max_feerate [u64].
 * Response: [admission].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_try_submit(
    const outrigger_service_t *mempool, uint64_t scope, outrigger_bytes_t raw, uint64_t max_feerate,
    outrigger_owned_bytes_t *response, outrigger_admission_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, raw);
    outrigger_put_u64(&request, max_feerate);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_TRY_SUBMIT, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_admission(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The selection for a block on the tip, of the mempool as it stands; none when its version is the one that the caller
 * knows, so that what has not changed is not handed over again.
 *
 * Request: known [optional u64].
 * Response: [optional candidate].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_candidate(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_optional_u64_t *known,
    outrigger_owned_bytes_t *response, outrigger_optional_candidate_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_optional_u64(&request, known);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_CANDIDATE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_candidate(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Adds to (or takes from) the fee that a transaction is selected by, in satoshi.
 *
 * Request: txid [hash], fee_delta [i64].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_mempool_prioritise(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_hash_t *txid, int64_t fee_delta,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_hash(&request, txid);
    outrigger_put_i64(&request, fee_delta);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_PRIORITISE, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * All that was added and stands, by txid.
 *
 * Request: nothing.
 * Response: [list of prioritised].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_prioritised(
    const outrigger_service_t *mempool, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_PRIORITISED, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_prioritised(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * For each of these ids whether it is of a transaction of the mempool that was offered by `submit` and that no peer is
 * known to have. One that came back from a block is none. Since minor 1.
 *
 * Request: txids [list of hash].
 * Response: [list of bool].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_unbroadcast(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_hash_t *txids, size_t txids_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_hash(&request, txids, txids_count);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_UNBROADCAST, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bool(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The feerate at which a transaction is expected to be confirmed within so many blocks, in satoshi per 1000 virtual
 * bytes; none where the node has no estimate. Since minor 1.
 *
 * Request: blocks [u32].
 * Response: [optional u64].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_mempool_fee_estimate(
    const outrigger_service_t *mempool, uint64_t scope, uint32_t blocks, outrigger_owned_bytes_t *response,
    outrigger_optional_u64_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    outrigger_put_u32(&request, blocks);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_FEE_ESTIMATE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_u64(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service wallet/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * The wallets: the contract of a store.
 *
 * The tests of the host's wallets hold them against it, promise by promise.
 *
 * **Which wallet.** From outrigger_wallet_info() on, the functions concern the wallet of the call: the one that its URI
 * names, or the only one loaded. They fail with OUTRIGGER_STATUS_WALLET_NOT_LOADED, OUTRIGGER_STATUS_NO_WALLET or
 * OUTRIGGER_STATUS_WALLET_NOT_SPECIFIED where there is none.
 *
 * **What is seen.** The first of them in a call waits until the wallet has followed the chain to the tip that the call
 * met, and taken over what the mempool told before. From then on all reads of the call see the wallet of that moment,
 * whatever others write; only what the mempool alone can say (replaceability, conflicts there) is of the moment of the
 * question. After a write of its own the call sees the wallet as written.
 *
 * **Writes** happen wholly or not at all. One that fails has changed nothing, except where its own words say so.
 * Ownership, debit, change and labels in rows, coins and scripts are those of now: the write that changes a reason for
 * them changes them.
 *
 * **Following.** A transaction is the wallet's from when it is met while it pays to a script that is not
 * OUTRIGGER_OWNERSHIP_NONE, or spends such an output of a transaction of the wallet; it stays for good. Block after
 * block it is confirmed; what a block contradicts, and what of the wallet builds on that, is conflicted by the lowest
 * such block. When a block is disconnected, what it confirmed or made impossible is in the mempool if it is there, else
 * inactive; its coinbase is given up, and so is what builds on it until it is met again. What leaves the mempool
 * without a block is inactive. When a wallet is loaded and when a rescan ends, what is inactive and no coinbase is
 * offered to the mempool again.
 *
 * **Lists** come in batches. `limit` is the most of a batch, 0 counts as 1, and a batch may end sooner; it holds at
 * least one entry where there is any. `next` is where the list goes on, none at its end. Its bytes mean nothing to the
 * caller and outlive the call: a batch that begins `after` them holds what stands behind the last entry of the former
 * batch by the order of the list, also when that entry has left the list since. So no entry comes twice, and none is
 * left out that stood in the list all the time at one place. An empty place, or one of more than 64 bytes, is
 * OUTRIGGER_STATUS_MALFORMED; others that no batch gave are read as some place.
 *
 * **A locked wallet** (encrypted and not unlocked) answers everything but what needs its keys: `import`,
 * `refill_keypool`, `descriptors` with private keys and `sign_many` fail with OUTRIGGER_STATUS_WALLET_LOCKED.
 *
 * **Errors** beside those that are named: OUTRIGGER_STATUS_STORAGE (nothing was stored),
 * OUTRIGGER_STATUS_SHUTTING_DOWN, OUTRIGGER_STATUS_STALE (the call has ended). What is only refused by the caller's
 * rules is not checked here: the store takes any import into any outrigger_wallet_kind_t, and an empty passphrase.
 */
#define OUTRIGGER_SERVICE_WALLET "wallet/1"

/** The positions of the functions of `wallet/1` in its table. */
enum {
    OUTRIGGER_FN_WALLET_CREATE = 0,
    OUTRIGGER_FN_WALLET_LOAD = 1,
    OUTRIGGER_FN_WALLET_UNLOAD = 2,
    OUTRIGGER_FN_WALLET_LIST = 3,
    OUTRIGGER_FN_WALLET_DIRECTORY = 4,
    OUTRIGGER_FN_WALLET_INFO = 5,
    OUTRIGGER_FN_WALLET_SCRIPTS = 6,
    OUTRIGGER_FN_WALLET_TRANSACTIONS = 7,
    OUTRIGGER_FN_WALLET_RAW_TRANSACTIONS = 8,
    OUTRIGGER_FN_WALLET_HISTORY = 9,
    OUTRIGGER_FN_WALLET_DESCRIPTOR_TEXTS = 10,
    OUTRIGGER_FN_WALLET_COINS = 11,
    OUTRIGGER_FN_WALLET_DESCRIPTORS = 12,
    OUTRIGGER_FN_WALLET_NEW_ADDRESS = 13,
    OUTRIGGER_FN_WALLET_SET_LABEL = 14,
    OUTRIGGER_FN_WALLET_IMPORT = 15,
    OUTRIGGER_FN_WALLET_RESCAN_RESERVE = 16,
    OUTRIGGER_FN_WALLET_RESCAN_RELEASE = 17,
    OUTRIGGER_FN_WALLET_RESCAN_START = 18,
    OUTRIGGER_FN_WALLET_RESCAN_ABORT = 19,
    OUTRIGGER_FN_WALLET_SET_METADATA = 20,
    OUTRIGGER_FN_WALLET_ABANDON = 21,
    OUTRIGGER_FN_WALLET_ENCRYPT = 22,
    OUTRIGGER_FN_WALLET_UNLOCK = 23,
    OUTRIGGER_FN_WALLET_LOCK = 24,
    OUTRIGGER_FN_WALLET_CHANGE_PASSPHRASE = 25,
    OUTRIGGER_FN_WALLET_LABELS = 26,
    OUTRIGGER_FN_WALLET_REFILL_KEYPOOL = 27,
    OUTRIGGER_FN_WALLET_SET_AVOID_REUSE = 28,
    OUTRIGGER_FN_WALLET_BACKUP = 29,
    OUTRIGGER_FN_WALLET_RESTORE = 30,
    OUTRIGGER_FN_WALLET_RETURN_ADDRESS = 31,
};

/**
 * Makes a wallet and loads it, as the last of the loaded ones. Gives its warnings. It begins at the tip: what is in
 * older blocks takes a rescan. Unless it is blank or keyless it gets a random master key and, for receiving and for
 * change, an active descriptor of each address type (BIP 44, 49, 84, 86), born at the node's time.
 *
 * OUTRIGGER_STATUS_WALLET_EXISTS when there is one of the name, loaded or not; OUTRIGGER_STATUS_REFUSED for a name that
 * is no plain relative path, or a passphrase without private keys. Then nothing is left behind.
 *
 * Request: options [create_options].
 * Response: [list of text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_create(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_create_options_t *options,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_SECRET_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_create_options(&request, options);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_CREATE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Loads a wallet as the last of the loaded ones, locked if it is encrypted. It follows the chain from where it stood,
 * and takes over the whole mempool. Gives its warnings.
 *
 * OUTRIGGER_STATUS_WALLET_ALREADY_LOADED; OUTRIGGER_STATUS_WALLET_NOT_LOADED when there is no such wallet, with the
 * reason; OUTRIGGER_STATUS_REFUSED for a bad name.
 *
 * Request: name [text], load_on_startup [optional bool].
 * Response: [list of text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_load(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t name,
    const outrigger_optional_bool_t *load_on_startup, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, name);
    outrigger_put_optional_bool(&request, load_on_startup);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LOAD, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Unloads a wallet; its file stays, with everything that was written. Gives its warnings.
 *
 * OUTRIGGER_STATUS_WALLET_NOT_LOADED; OUTRIGGER_STATUS_WALLET_RESCANNING while a rescan is reserved or runs.
 *
 * Request: name [text], load_on_startup [optional bool].
 * Response: [list of text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_unload(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t name,
    const outrigger_optional_bool_t *load_on_startup, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, name);
    outrigger_put_optional_bool(&request, load_on_startup);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_UNLOAD, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The names of the loaded wallets, in the order in which they were loaded.
 *
 * Request: nothing.
 * Response: [list of text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_list(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LIST, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The names of all wallets on disk, sorted by their bytes.
 *
 * Request: nothing.
 * Response: [list of text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_directory(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_DIRECTORY, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The wallet of the call.
 *
 * Request: nothing.
 * Response: [wallet_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_info(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_wallet_info_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_INFO, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_wallet_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * What the wallet knows of these scripts, in their order; none where it knows nothing. It knows a script that is its
 * own or watched, that has a label, or of whose spending an import said something. What the first descriptor that
 * derives it says outranks other descriptors and imports.
 *
 * Request: scripts [list of bytes].
 * Response: [list of optional script_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_scripts(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_bytes_t *scripts, size_t scripts_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_bytes(&request, scripts, scripts_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SCRIPTS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_script_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Those of these transactions that the wallet has, in the order asked for (one asked for twice comes twice), in one
 * batch, whose `next` is none.
 *
 * Request: txids [list of hash].
 * Response: [history_batch].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_transactions(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_hash_t *txids, size_t txids_count,
    outrigger_owned_bytes_t *response, outrigger_history_batch_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_hash(&request, txids, txids_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_TRANSACTIONS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_history_batch(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The serialisations of the wallet's transactions of these ids, in their order, with the witness met last; none for
 * those that it does not have.
 *
 * Request: txids [list of hash].
 * Response: [list of optional bytes].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_raw_transactions(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_hash_t *txids, size_t txids_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_hash(&request, txids, txids_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RAW_TRANSACTIONS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * A part of the history, in the order of its range or backwards.
 *
 * Request: query [history_query].
 * Response: [history_batch].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_history(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_history_query_t *query,
    outrigger_owned_bytes_t *response, outrigger_history_batch_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_history_query(&request, query);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_HISTORY, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_history_batch(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The public texts of descriptors by their numbers, as they were imported and with checksum, in their order; none where
 * the wallet has no such descriptor. Numbers begin at 0 and are never given again.
 *
 * Request: numbers [list of u32].
 * Response: [list of optional text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_descriptor_texts(
    const outrigger_service_t *wallet, uint64_t scope, const uint32_t *numbers, size_t numbers_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_u32(&request, numbers, numbers_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_DESCRIPTOR_TEXTS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Coins, from the outpoint after `after` on: by the txid's internal bytes, then the output's number as four
 * little-endian bytes. A coin is an output that is not OUTRIGGER_OWNERSHIP_NONE, of a transaction that is confirmed, in
 * the mempool or, unless it is a coinbase, inactive, and that no such transaction of the wallet spends. What conflicts
 * with a transaction of the mempool (see `mempool_conflicts`) neither makes nor spends a coin.
 *
 * Request: after [optional bytes], limit [u32].
 * Response: [coin_batch].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_coins(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_optional_bytes_t *after, uint32_t limit,
    outrigger_owned_bytes_t *response, outrigger_coin_batch_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_optional_bytes(&request, after);
    outrigger_put_u32(&request, limit);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_COINS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_coin_batch(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The descriptors by their numbers, hardened steps taken as far as the keys allow; with private keys where these are
 * asked for and held, as they were imported. OUTRIGGER_STATUS_WALLET_LOCKED when private ones are asked of a locked
 * wallet; OUTRIGGER_STATUS_NOT_GRANTED without the grant for its keys.
 *
 * Request: private [bool].
 * Response: [list of descriptor_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_descriptors(
    const outrigger_service_t *wallet, uint64_t scope, bool private_, outrigger_owned_bytes_t *response,
    outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bool(&request, private_);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_DESCRIPTORS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_descriptor_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * A fresh address's script, entered in the address book with the label (none: for change, not entered): at the next
 * index of the active descriptor of the type and side, once as many scripts as are kept ahead are derived from that
 * index on; without one, of the oldest key of the imported keypool, which is then watched. An address is fresh no more
 * once the wallet has met a payment to it; one that it knew before it derived the address, it meets again by a rescan,
 * or in the mempool when it is loaded. Such a payment passes over the indexes up to its own; those of an active
 * descriptor for receiving then have an entry in the address book (with an empty label, where they had none). Each
 * payment to a descriptor derives as many scripts ahead as are kept.
 *
 * OUTRIGGER_STATUS_REFUSED when no address of any type can be had on that side; OUTRIGGER_STATUS_KEYPOOL_RAN_OUT when
 * others can, or nothing more can be derived (hardened steps in a locked wallet, a descriptor without a range).
 *
 * Request: kind [address_type], internal [bool], label [optional text].
 * Response: [bytes].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_new_address(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_address_type_t kind, bool internal,
    const outrigger_optional_bytes_t *label, outrigger_owned_bytes_t *response, outrigger_bytes_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_address_type(&request, kind);
    outrigger_put_bool(&request, internal);
    outrigger_put_optional_bytes(&request, label);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_NEW_ADDRESS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Sets a script's label in the address book, also of others' scripts. Nothing where it has no address form.
 * Pay-to-pubkey has none. OUTRIGGER_STATUS_REFUSED for a label of more than 4,096 bytes, as of `new_address` and in
 * imports.
 *
 * Request: script [bytes], label [text].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_set_label(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t script, outrigger_bytes_t label,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bytes(&request, script);
    outrigger_put_bytes(&request, label);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SET_LABEL, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Imports all requests in one write, in their order, each with its own outcome: one that is refused changes nothing and
 * leaves the others as they are. A request sees what those before it imported.
 *
 * At once the wallet needs a backup, its birth time is no later than the request's, and its rows, coins and scripts say
 * what they are now. What was in blocks or in the mempool before and concerns it only now is found by a rescan. A
 * descriptor owns (OUTRIGGER_OWNERSHIP_SPENDABLE, with or without private keys) what it derives from index 0, or the
 * range's beginning where that is above 1,000,000, to its range's end and as far ahead of the next index as the store
 * keeps scripts. One that is known by its public text keeps its number and its scripts and takes on the rest of the
 * request. Of two paths the first is for receiving and the second for change. Only a descriptor without a range that is
 * not for change gets a label. Keys make spendable what they can spend by themselves or with known scripts; what else
 * the request names is watched.
 *
 * OUTRIGGER_STATUS_WALLET_LOCKED, also for no requests.
 *
 * Request: requests [list of import].
 * Response: [list of import_outcome].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_import(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_import_t *requests, size_t requests_count,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_SECRET_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_import(&request, requests, requests_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_IMPORT, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_import_outcome(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Reserves the wallet's one rescan and gives its number, which no other rescan had since the wallet was loaded.
 * OUTRIGGER_STATUS_WALLET_RESCANNING while one is reserved or runs.
 *
 * Request: nothing.
 * Response: [u64].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_wallet_rescan_reserve(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response, uint64_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RESCAN_RESERVE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_u64(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Gives a reservation back unused. Nothing where it is not reserved.
 *
 * Request: rescan [u64].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_rescan_release(
    const outrigger_service_t *wallet, uint64_t scope, uint64_t rescan, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_u64(&request, rescan);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RESCAN_RELEASE, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Starts the reserved rescan at the first block whose running-maximum time is at least `from_time` less two hours, up
 * to where the wallet stands, then the whole mempool. Its end is told by OUTRIGGER_EVENT_RESCAN_FINISHED; then its
 * place is free. OUTRIGGER_STATUS_NOT_FOUND when this is not reserved.
 *
 * Request: rescan [u64], from_time [u64].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_rescan_start(
    const outrigger_service_t *wallet, uint64_t scope, uint64_t rescan, uint64_t from_time,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_u64(&request, rescan);
    outrigger_put_u64(&request, from_time);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RESCAN_START, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Aborts the running rescan; whether there was one. A reserved one does not run.
 *
 * Request: nothing.
 * Response: [bool].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_wallet_rescan_abort(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response, bool *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RESCAN_ABORT, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_bool(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Stores a text with a transaction (`comment`, `to`) in the place of the former one of the key; an empty one is taken
 * away. They are told sorted by key. OUTRIGGER_STATUS_NOT_FOUND for a transaction that the wallet does not have;
 * OUTRIGGER_STATUS_REFUSED for a text of more than 16,384 bytes.
 *
 * Request: txid [hash], key [text], value [text].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_set_metadata(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_hash_t *txid, outrigger_bytes_t key,
    outrigger_bytes_t value, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_hash(&request, txid);
    outrigger_put_bytes(&request, key);
    outrigger_put_bytes(&request, value);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SET_METADATA, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Gives up a transaction that is neither in the chain nor in the mempool, and what of the wallet builds on it: what
 * they spend is free. Should one come back, it counts as if it had not been given up. Nothing for one that is given up
 * already. OUTRIGGER_STATUS_NOT_FOUND for one that the wallet does not have; OUTRIGGER_STATUS_REFUSED when it is in the
 * chain, in the mempool, or OUTRIGGER_TX_STATE_CONFLICTED.
 *
 * Request: txid [hash].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_abandon(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_hash_t *txid, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_hash(&request, txid);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_ABANDON, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Seals the wallet's keys with a passphrase and locks it. Unless it was made blank, a fresh master key gives the active
 * descriptors of each address type from then on; the former ones, imported ones included, stay as inactive ones.
 * OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is encrypted; OUTRIGGER_STATUS_REFUSED when it may not hold private
 * keys.
 *
 * Request: passphrase [secret].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_encrypt(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t passphrase, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_SECRET_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bytes(&request, passphrase);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_ENCRYPT, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Unlocks an encrypted wallet for a time from now on, in seconds, at most 100,000,000. `unlocked_until` is told by the
 * node's clock. OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is not encrypted;
 * OUTRIGGER_STATUS_PASSPHRASE_INCORRECT, which leaves it as it was.
 *
 * Request: passphrase [secret], seconds [u64].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_unlock(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t passphrase, uint64_t seconds,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_SECRET_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bytes(&request, passphrase);
    outrigger_put_u64(&request, seconds);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_UNLOCK, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Locks it now; nothing where it is locked. OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is not encrypted.
 *
 * Request: nothing.
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_lock(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LOCK, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Changes the passphrase, and leaves it locked or unlocked. OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is not
 * encrypted; OUTRIGGER_STATUS_PASSPHRASE_INCORRECT, which locks it.
 *
 * Request: old [secret], new [secret].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_change_passphrase(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t old, outrigger_bytes_t new_,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_SECRET_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bytes(&request, old);
    outrigger_put_bytes(&request, new_);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_CHANGE_PASSPHRASE, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * The address book, from the place `after` on: each entry once, in an order that does not change. Since minor 1.
 *
 * Request: after [optional bytes], limit [u32].
 * Response: [label_batch].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_labels(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_optional_bytes_t *after, uint32_t limit,
    outrigger_owned_bytes_t *response, outrigger_label_batch_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_optional_bytes(&request, after);
    outrigger_put_u32(&request, limit);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LABELS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_label_batch(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Derives scripts until `size` lie ahead of the next index of each active descriptor; none: as many as the host keeps
 * ahead. Where more do, they stay. OUTRIGGER_STATUS_REFUSED for more than 1,000,000; OUTRIGGER_STATUS_WALLET_LOCKED.
 * Since minor 1.
 *
 * Request: size [optional u32].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_refill_keypool(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_optional_u32_t *size,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_optional_u32(&request, size);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_REFILL_KEYPOOL, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Sets whether the wallet avoids reused addresses. Since minor 1.
 *
 * Request: avoid [bool].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_set_avoid_reuse(
    const outrigger_service_t *wallet, uint64_t scope, bool avoid, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bool(&request, avoid);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SET_AVOID_REUSE, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Writes a copy of the wallet as it is now to a file, which `restore` opens. Only a backup there is replaced. The
 * wallet itself then needs no backup until the next import. OUTRIGGER_STATUS_REFUSED when the file cannot be written.
 * Since minor 1.
 *
 * Request: file [text].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_backup(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t file, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bytes(&request, file);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_BACKUP, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Makes a wallet of a name from the file of a backup and loads it, as `load` does. Gives its warnings.
 * OUTRIGGER_STATUS_NOT_FOUND when there is no such file; OUTRIGGER_STATUS_WALLET_EXISTS;
 * OUTRIGGER_STATUS_WALLET_NOT_LOADED when it is no backup; OUTRIGGER_STATUS_REFUSED for a bad name. Since minor 1.
 *
 * Request: name [text], file [text], load_on_startup [optional bool].
 * Response: [list of text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_restore(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t name, outrigger_bytes_t file,
    const outrigger_optional_bool_t *load_on_startup, outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_bytes(&request, name);
    outrigger_put_bytes(&request, file);
    outrigger_put_optional_bool(&request, load_on_startup);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RESTORE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Gives back an address that `new_address` gave and that is not needed, as that of the change of a payment which is not
 * made: its index is the next one again, and what was derived ahead stays. Whether it was: not where another one was
 * drawn since or a payment passed over it, nor for a key of the imported keypool. Since minor 1.
 *
 * Request: script [bytes].
 * Response: [bool].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_wallet_return_address(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t script, outrigger_owned_bytes_t *response,
    bool *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    outrigger_put_bytes(&request, script);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RETURN_ADDRESS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_bool(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service signer/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * Signatures by the keys of the call's wallet.
 *
 * Which wallet that is, and what a call sees of it, is as with `Wallet`. Both functions fail with
 * OUTRIGGER_STATUS_NOT_GRANTED where the plugin may not use the wallet's keys. Public keys are given as they stand in
 * scripts, and are found by that form alone: a compressed key by its 33 bytes, an uncompressed one by its 65, and a
 * compressed one also by its 32-byte x coordinate, whichever of the two points with it is the wallet's. Any other bytes
 * are nobody's key.
 *
 * A descriptor's keys sign for the scripts that it derives, each for those of its own index; keys that were imported by
 * themselves sign for any script.
 */
#define OUTRIGGER_SERVICE_SIGNER "signer/1"

/** The positions of the functions of `signer/1` in its table. */
enum {
    OUTRIGGER_FN_SIGNER_AVAILABLE = 0,
    OUTRIGGER_FN_SIGNER_SIGN_MANY = 1,
};

/**
 * Which of these public keys (33, 65 or 32 bytes) the wallet could sign with, for outputs with these scripts, in their
 * order. A locked wallet answers as an unlocked one would, except that of a descriptor with only some of its private
 * keys all keys count, and none of those behind a hardened wildcard.
 *
 * Request: scripts [list of bytes], public_keys [list of bytes].
 * Response: [list of bool].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_signer_available(
    const outrigger_service_t *signer, uint64_t scope, const outrigger_bytes_t *scripts, size_t scripts_count,
    const outrigger_bytes_t *public_keys, size_t public_keys_count, outrigger_owned_bytes_t *response,
    outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_list_of_bytes(&request, scripts, scripts_count);
    outrigger_put_list_of_bytes(&request, public_keys, public_keys_count);
    status = outrigger_ask_written(signer, OUTRIGGER_FN_SIGNER_AVAILABLE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bool(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Signs each request, in their order; none where the wallet has no such key for these scripts. The same request gives
 * the same signature. Fails whole with OUTRIGGER_STATUS_WALLET_LOCKED when the wallet is locked, also for no requests.
 *
 * Request: batch [sign_batch].
 * Response: [list of optional bytes].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_signer_sign_many(
    const outrigger_service_t *signer, uint64_t scope, const outrigger_sign_batch_t *batch,
    outrigger_owned_bytes_t *response, outrigger_list_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    if (response == NULL) {
        return OUTRIGGER_STATUS_MALFORMED;
    }
    outrigger_put_sign_batch(&request, batch);
    status = outrigger_ask_written(signer, OUTRIGGER_FN_SIGNER_SIGN_MANY, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_optional_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service events/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The state of this instance's event queue. */
#define OUTRIGGER_SERVICE_EVENTS "events/1"

/** The positions of the functions of `events/1` in its table. */
enum {
    OUTRIGGER_FN_EVENTS_DROPPED = 0,
};

/**
 * How many events were dropped because the queue was full.
 *
 * Request: nothing.
 * Response: [u64].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_events_dropped(
    const outrigger_service_t *events, uint64_t scope, outrigger_owned_bytes_t *response, uint64_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(events, OUTRIGGER_FN_EVENTS_DROPPED, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_u64(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service log/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The host's log. */
#define OUTRIGGER_SERVICE_LOG "log/1"

/** The positions of the functions of `log/1` in its table. */
enum {
    OUTRIGGER_FN_LOG_WRITE = 0,
};

/**
 * Writes one line, with the plugin's name beside it.
 *
 * Request: level [level], message [text].
 * Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_log_write(
    const outrigger_service_t *log, uint64_t scope, outrigger_level_t level, outrigger_bytes_t message,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_level(&request, level);
    outrigger_put_bytes(&request, message);
    status = outrigger_ask_written(log, OUTRIGGER_FN_LOG_WRITE, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

#ifdef __cplusplus
}
#endif

#endif
