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
 * sdk/C.md has a whole plugin on one page. Two files beside this one can be done without: outrigger_json.h reads arguments and
 * writes answers, outrigger_services.h has the messages of the services as C types and a typed function for each function.
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
 * In outrigger_services.h there is for each struct and choice a C type, whose members stand in the order of the encoding, each with its encoding in
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
    /** A node or an address that was added or banned before. */
    OUTRIGGER_CODE_CLIENT_NODE_ALREADY_ADDED = -23,
    /** A node that was not added. */
    OUTRIGGER_CODE_CLIENT_NODE_NOT_ADDED = -24,
    /** Verification failed. */
    OUTRIGGER_CODE_VERIFY = -25,
    /** Verification refused a transaction or block by its rules. */
    OUTRIGGER_CODE_VERIFY_REJECTED = -26,
    /** The transaction is in the chain already. */
    OUTRIGGER_CODE_VERIFY_ALREADY_IN_CHAIN = -27,
    /** The host is still starting. */
    OUTRIGGER_CODE_IN_WARMUP = -28,
    /** A node that is not connected. */
    OUTRIGGER_CODE_CLIENT_NODE_NOT_CONNECTED = -29,
    /** An address of a node, or a range of them, that is none or was not banned. */
    OUTRIGGER_CODE_CLIENT_INVALID_IP_OR_SUBNET = -30,
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
 * The service chain/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The chain. Reads within a call see one snapshot of it. */
#define OUTRIGGER_SERVICE_CHAIN "chain/1"

/** The positions of the functions of `chain/1` in its table. */
enum {
    /**
     * The best block.
     *
     * Request: nothing. Response: [tip].
     */
    OUTRIGGER_FN_CHAIN_TIP = 0,
    /**
     * Which chain this is and where it stands.
     *
     * Request: nothing. Response: [chain_info].
     */
    OUTRIGGER_FN_CHAIN_INFO = 1,
    /**
     * A block's entry in the index; none when it is unknown.
     *
     * Request: block [block_ref]. Response: [optional block_info].
     */
    OUTRIGGER_FN_CHAIN_BLOCK_INFO = 2,
    /**
     * A block's serialisation, on any branch; none when it is unknown, only its header is known, or the node has
     * dropped it (`-prune`).
     *
     * Request: hash [hash]. Response: [optional bytes].
     */
    OUTRIGGER_FN_CHAIN_BLOCK = 3,
    /**
     * What each transaction of a connected block spent, the coinbase's entry being empty; none where the node has
     * dropped it, or is a bitcoind before Bitcoin Core 23, which does not tell it.
     *
     * Request: hash [hash]. Response: [optional list of spent_outputs].
     */
    OUTRIGGER_FN_CHAIN_SPENT_OUTPUTS = 4,
    /**
     * The confirmed transaction of an id on the best chain. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind
     * without `txindex=1`.
     *
     * Request: txid [hash]. Response: [optional confirmed_transaction].
     */
    OUTRIGGER_FN_CHAIN_TRANSACTION = 5,
    /**
     * The unspent outputs of the best chain at these outpoints, in their order.
     *
     * Request: outpoints [list of out_point]. Response: [list of optional coin].
     */
    OUTRIGGER_FN_CHAIN_COINS = 6,
    /**
     * The last block that a block and the best chain share; none when the block is unknown.
     *
     * Request: hash [hash]. Response: [optional block_info].
     */
    OUTRIGGER_FN_CHAIN_FORK_POINT = 7,
    /**
     * The ends of all branches, the best chain's first, then by falling height.
     *
     * Request: nothing. Response: [list of chain_tip].
     */
    OUTRIGGER_FN_CHAIN_TIPS = 8,
    /**
     * What a block on the tip must and may be. Fails with OUTRIGGER_STATUS_NODE_UNAVAILABLE on a bitcoind that makes no
     * templates now: it has no peers, or is still fetching the chain.
     *
     * Request: nothing. Response: [next_block].
     */
    OUTRIGGER_FN_CHAIN_NEXT_BLOCK = 9,
    /**
     * The host's time, in seconds: the clock's, or the mocked one.
     *
     * Request: nothing. Response: [u64].
     */
    OUTRIGGER_FN_CHAIN_TIME = 10,
    /**
     * Judges a block on the tip without its proof of work and without keeping anything (BIP 23 proposal).
     *
     * Request: raw [bytes]. Response: [verdict].
     */
    OUTRIGGER_FN_CHAIN_CHECK_BLOCK = 11,
    /**
     * Stores a block and, where it makes the best chain, connects it. What is answered valid is on disk.
     *
     * Request: raw [bytes]. Response: [verdict].
     */
    OUTRIGGER_FN_CHAIN_SUBMIT_BLOCK = 12,
    /**
     * Stores a header (80 bytes) whose previous block is known.
     *
     * Request: raw [bytes]. Response: [verdict].
     */
    OUTRIGGER_FN_CHAIN_SUBMIT_HEADER = 13,
    /**
     * Marks a block and all that builds on it as invalid, and goes to the best chain that remains.
     *
     * Request: hash [hash]. Response: [nothing].
     */
    OUTRIGGER_FN_CHAIN_INVALIDATE_BLOCK = 14,
    /**
     * Takes back what `invalidate_block` did to a block, its ancestors and descendants.
     *
     * Request: hash [hash]. Response: [nothing].
     */
    OUTRIGGER_FN_CHAIN_RECONSIDER_BLOCK = 15,
    /**
     * Prefers a block to others of the same work, as if it had come first.
     *
     * Request: hash [hash]. Response: [nothing].
     */
    OUTRIGGER_FN_CHAIN_PRECIOUS_BLOCK = 16,
    /**
     * Sets the host's time in seconds; 0 goes back to the clock. Test chains only.
     *
     * Request: seconds [u64]. Response: [nothing].
     */
    OUTRIGGER_FN_CHAIN_SET_MOCK_TIME = 17,
    /**
     * The unspent outputs of the best chain that follow this one, or the first ones, by the bytes of the transaction's
     * id and then by index: at most so many, and fewer where they would make a large answer, but one at least where
     * there is any. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
     *
     * Request: outpoint [optional out_point], limit [u32]. Response: [list of unspent_output].
     */
    OUTRIGGER_FN_CHAIN_COINS_AFTER = 18,
    /**
     * The changes of the rules as they stand with a block of any branch, in bitcoind's order; none when it is unknown.
     * Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind before Bitcoin Core 23. What it does not tell of a
     * deployment is 0: the bit, the period and the threshold where signals do not count. Since minor 1.
     *
     * Request: hash [hash]. Response: [optional list of deployment].
     */
    OUTRIGGER_FN_CHAIN_DEPLOYMENTS = 19,
    /**
     * The network that the node is on. It never changes, and is answered at once, whatever the node does. Since minor
     * 1.
     *
     * Request: nothing. Response: [text].
     */
    OUTRIGGER_FN_CHAIN_NETWORK = 20,
    /**
     * What is published over ZMQ, in the order in which it is sent; nothing in front of a bitcoind. Since minor 1.
     *
     * Request: nothing. Response: [list of publication].
     */
    OUTRIGGER_FN_CHAIN_PUBLICATIONS = 21,
    /**
     * Writes the unspent outputs as of a block of the best chain to a new file, which bitcoind reads. A path that is
     * relative begins in the folder of the network's data. OUTRIGGER_STATUS_REFUSED with what to tell the client where
     * there is such a file, or none can be made. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
     *
     * Request: file [text], block [hash]. Response: [coins_dump].
     */
    OUTRIGGER_FN_CHAIN_DUMP_COINS = 22,
    /**
     * Looks for scripts among the unspent outputs that follow this one, or among the first ones, in the order of
     * `coins_after`. At most so many are looked at, and fewer where what is found would make a large answer, but one at
     * least where there is any. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
     *
     * Request: scripts [list of bytes], outpoint [optional out_point], limit [u32]. Response: [coin_search].
     */
    OUTRIGGER_FN_CHAIN_FIND_COINS = 23,
    /**
     * Waits until the loaded wallets have taken over all that the node had told them at the call (bitcoind's
     * syncwithvalidationinterfacequeue). One that cannot follow the chain is not waited for. Since minor 1.
     *
     * Request: nothing. Response: [nothing].
     */
    OUTRIGGER_FN_CHAIN_WAIT_FOR_WALLETS = 24,
    /**
     * The height of the lowest block from which on the node has all, where it began with a snapshot of the unspent
     * outputs (assumeutxo), and fetches and validates the blocks before in the background; none of any other node.
     * Blocks that are lacking then come by themselves. Since minor 1.
     *
     * Request: nothing. Response: [optional u32].
     */
    OUTRIGGER_FN_CHAIN_BACKGROUND_VALIDATION = 25,
};

/* ------------------------------------------------------------------------------------------------------------------
 * The service mempool/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The unconfirmed transactions. */
#define OUTRIGGER_SERVICE_MEMPOOL "mempool/1"

/** The positions of the functions of `mempool/1` in its table. */
enum {
    /**
     * The mempool as a whole.
     *
     * Request: nothing. Response: [mempool_info].
     */
    OUTRIGGER_FN_MEMPOOL_INFO = 0,
    /**
     * All ids, in the order they came.
     *
     * Request: nothing. Response: [list of hash].
     */
    OUTRIGGER_FN_MEMPOOL_IDS = 1,
    /**
     * The entries of these ids, in their order.
     *
     * Request: txids [list of hash]. Response: [list of optional mempool_entry].
     */
    OUTRIGGER_FN_MEMPOOL_ENTRIES = 2,
    /**
     * The transactions of these ids, in their order.
     *
     * Request: txids [list of hash]. Response: [list of optional raw_transaction].
     */
    OUTRIGGER_FN_MEMPOOL_TRANSACTIONS = 3,
    /**
     * The transactions of the mempool that spend these outpoints, in their order.
     *
     * Request: outpoints [list of out_point]. Response: [list of optional hash].
     */
    OUTRIGGER_FN_MEMPOOL_SPENDERS = 4,
    /**
     * Offers a transaction. `max_feerate` bounds its feerate in satoshi per 1000 virtual bytes, 0 being no bound.
     *
     * Request: raw [bytes], max_feerate [u64]. Response: [admission].
     */
    OUTRIGGER_FN_MEMPOOL_SUBMIT = 5,
    /**
     * As `submit`, keeping nothing.
     *
     * Request: raw [bytes], max_feerate [u64]. Response: [admission].
     */
    OUTRIGGER_FN_MEMPOOL_TRY_SUBMIT = 6,
    /**
     * The selection for a block on the tip, of the mempool as it stands; none when its version is the one that the
     * caller knows, so that what has not changed is not handed over again. In front of a bitcoind it is the node's own,
     * which it makes anew for another tip and else every five seconds at most; it fails as outrigger_chain_next_block()
     * does.
     *
     * Request: known [optional u64]. Response: [optional candidate].
     */
    OUTRIGGER_FN_MEMPOOL_CANDIDATE = 7,
    /**
     * Adds to (or takes from) the fee that a transaction is selected by, in satoshi.
     *
     * Request: txid [hash], fee_delta [i64]. Response: [nothing].
     */
    OUTRIGGER_FN_MEMPOOL_PRIORITISE = 8,
    /**
     * All that was added and stands, by txid. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind before Bitcoin Core
     * 26.
     *
     * Request: nothing. Response: [list of prioritised].
     */
    OUTRIGGER_FN_MEMPOOL_PRIORITISED = 9,
    /**
     * For each of these ids whether it is of a transaction of the mempool that was offered by `submit` and that no peer
     * is known to have. One that came back from a block is none. Since minor 1.
     *
     * Request: txids [list of hash]. Response: [list of bool].
     */
    OUTRIGGER_FN_MEMPOOL_UNBROADCAST = 10,
    /**
     * The feerate at which a transaction is expected to be confirmed within so many blocks. A conservative one also
     * looks further back, so that it falls later when fees fall; the other is economical (`estimate_mode`). Since minor
     * 1.
     *
     * Request: blocks [u32], conservative [bool]. Response: [fee_estimate].
     */
    OUTRIGGER_FN_MEMPOOL_FEE_ESTIMATE = 11,
    /**
     * Offers transactions that build on one another, parents before their one child: first each by itself, then those
     * together that pay too little by themselves. `max_feerate` is that of `submit`, and bounds each. Fails with
     * OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
     *
     * Request: transactions [list of bytes], max_feerate [u64]. Response: [package_outcome].
     */
    OUTRIGGER_FN_MEMPOOL_SUBMIT_PACKAGE = 12,
    /**
     * What the mempool would say of these transactions, of which each pays for itself and none replaces others, unless
     * it is the only one; keeping nothing. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
     *
     * Request: transactions [list of bytes]. Response: [package_outcome].
     */
    OUTRIGGER_FN_MEMPOOL_TRY_PACKAGE = 13,
    /**
     * Writes the mempool to a file that bitcoind reads, and gives its path. OUTRIGGER_STATUS_REFUSED when it cannot be
     * written. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
     *
     * Request: nothing. Response: [text].
     */
    OUTRIGGER_FN_MEMPOOL_SAVE = 14,
    /**
     * Offers the transactions of such a file to the mempool, as if they came one after the other.
     * OUTRIGGER_STATUS_REFUSED when the file may not or cannot be read; what stands before a damage is taken in. Fails
     * with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
     *
     * Request: file [text], options [mempool_import]. Response: [nothing].
     */
    OUTRIGGER_FN_MEMPOOL_IMPORT = 15,
};

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
 * without a block is inactive. What is inactive and no coinbase is offered to the mempool again when the wallet is
 * loaded, when a rescan ends, when the node is there again after it was away, and then every 12 to 36 hours.
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
 * OUTRIGGER_STATUS_SHUTTING_DOWN, OUTRIGGER_STATUS_STALE (the call has ended). Only the caller's rules refuse an empty
 * passphrase: it is not checked here.
 */
#define OUTRIGGER_SERVICE_WALLET "wallet/1"

/** The positions of the functions of `wallet/1` in its table. */
enum {
    /**
     * Makes a wallet and loads it, as the last of the loaded ones. Gives its warnings. It begins at the tip: what is in
     * older blocks takes a rescan. Unless it is blank or keyless it gets a random master key and, for receiving and for
     * change, an active descriptor of each address type (BIP 44, 49, 84, 86), born at the node's time.
     *
     * OUTRIGGER_STATUS_WALLET_EXISTS when there is one of the name, loaded or not; OUTRIGGER_STATUS_REFUSED for a name
     * that is no plain path, or a passphrase without private keys. Then nothing is left behind.
     *
     * Request: options [create_options]. Response: [list of text].
     */
    OUTRIGGER_FN_WALLET_CREATE = 0,
    /**
     * Loads a wallet as the last of the loaded ones, locked if it is encrypted. It follows the chain from where it
     * stood, and takes over the whole mempool. Gives its warnings.
     *
     * OUTRIGGER_STATUS_WALLET_ALREADY_LOADED; OUTRIGGER_STATUS_WALLET_NOT_LOADED when there is no such wallet, with the
     * reason; OUTRIGGER_STATUS_REFUSED for a bad name.
     *
     * Request: name [text], load_on_startup [optional bool]. Response: [list of text].
     */
    OUTRIGGER_FN_WALLET_LOAD = 1,
    /**
     * Unloads a wallet; its file stays, with everything that was written. Gives its warnings.
     *
     * OUTRIGGER_STATUS_WALLET_NOT_LOADED; OUTRIGGER_STATUS_WALLET_RESCANNING while a rescan is reserved or runs.
     *
     * Request: name [text], load_on_startup [optional bool]. Response: [list of text].
     */
    OUTRIGGER_FN_WALLET_UNLOAD = 2,
    /**
     * The names of the loaded wallets, in the order in which they were loaded.
     *
     * Request: nothing. Response: [list of text].
     */
    OUTRIGGER_FN_WALLET_LIST = 3,
    /**
     * The names of all wallets on disk, sorted by their bytes.
     *
     * Request: nothing. Response: [list of text].
     */
    OUTRIGGER_FN_WALLET_DIRECTORY = 4,
    /**
     * The wallet of the call.
     *
     * Request: nothing. Response: [wallet_info].
     */
    OUTRIGGER_FN_WALLET_INFO = 5,
    /**
     * What the wallet knows of these scripts, in their order; none where it knows nothing. It knows a script that is
     * its own or watched, that has a label, or of whose spending an import said something. What the first descriptor
     * that derives it says outranks other descriptors and imports.
     *
     * Request: scripts [list of bytes]. Response: [list of optional script_info].
     */
    OUTRIGGER_FN_WALLET_SCRIPTS = 6,
    /**
     * Those of these transactions that the wallet has, in the order asked for (one asked for twice comes twice), in one
     * batch, whose `next` is none.
     *
     * Request: txids [list of hash]. Response: [history_batch].
     */
    OUTRIGGER_FN_WALLET_TRANSACTIONS = 7,
    /**
     * The serialisations of the wallet's transactions of these ids, in their order, with the witness met last; none for
     * those that it does not have.
     *
     * Request: txids [list of hash]. Response: [list of optional bytes].
     */
    OUTRIGGER_FN_WALLET_RAW_TRANSACTIONS = 8,
    /**
     * A part of the history, in the order of its range or backwards.
     *
     * Request: query [history_query]. Response: [history_batch].
     */
    OUTRIGGER_FN_WALLET_HISTORY = 9,
    /**
     * The public texts of descriptors by their numbers, as they were imported and with checksum, in their order; none
     * where the wallet has no such descriptor. Numbers begin at 0 and are never given again.
     *
     * Request: numbers [list of u32]. Response: [list of optional text].
     */
    OUTRIGGER_FN_WALLET_DESCRIPTOR_TEXTS = 10,
    /**
     * Coins, from the outpoint after `after` on: by the txid's internal bytes, then the output's number as four
     * little-endian bytes. A coin is an output that is not OUTRIGGER_OWNERSHIP_NONE, of a transaction that is
     * confirmed, in the mempool or, unless it is a coinbase, inactive, and that no such transaction of the wallet
     * spends. What conflicts with a transaction of the mempool (see `mempool_conflicts`) neither makes nor spends a
     * coin.
     *
     * Request: after [optional bytes], limit [u32]. Response: [coin_batch].
     */
    OUTRIGGER_FN_WALLET_COINS = 11,
    /**
     * The descriptors by their numbers, hardened steps taken as far as the keys allow; with private keys where these
     * are asked for and held, as they were imported. OUTRIGGER_STATUS_WALLET_LOCKED when private ones are asked of a
     * locked wallet; OUTRIGGER_STATUS_NOT_GRANTED without the grant for its keys.
     *
     * Request: private [bool]. Response: [list of descriptor_info].
     */
    OUTRIGGER_FN_WALLET_DESCRIPTORS = 12,
    /**
     * A fresh address's script, entered in the address book with the label (none: for change, not entered): at the next
     * index of the active descriptor of the type and side, once as many scripts as are kept ahead are derived from that
     * index on; without one, of the oldest key of the imported keypool, which is then watched. An address is fresh no
     * more once the wallet has met a payment to it; one that it knew before it derived the address, it meets again by a
     * rescan, or in the mempool when it is loaded. Such a payment passes over the indexes up to its own; those of an
     * active descriptor for receiving then have an entry in the address book (with an empty label, where they had
     * none). Each payment to a descriptor derives as many scripts ahead as are kept.
     *
     * OUTRIGGER_STATUS_REFUSED when no address of any type can be had on that side; OUTRIGGER_STATUS_KEYPOOL_RAN_OUT
     * when others can, or nothing more can be derived (hardened steps in a locked wallet, a descriptor without a
     * range).
     *
     * Request: kind [address_type], internal [bool], label [optional text]. Response: [bytes].
     */
    OUTRIGGER_FN_WALLET_NEW_ADDRESS = 13,
    /**
     * Sets a script's label in the address book, also of others' scripts. Nothing where it has no address form.
     * Pay-to-pubkey has none. OUTRIGGER_STATUS_REFUSED for a label of more than 4,096 bytes, as of `new_address` and in
     * imports.
     *
     * Request: script [bytes], label [text]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_SET_LABEL = 14,
    /**
     * Imports all requests in one write, in their order, each with its own outcome: one that is refused changes nothing
     * and leaves the others as they are. A request sees what those before it imported.
     *
     * At once the wallet needs a backup, its birth time is no later than the request's, and its rows, coins and scripts
     * say what they are now. What was in blocks or in the mempool before and concerns it only now is found by a rescan.
     * A descriptor owns (OUTRIGGER_OWNERSHIP_SPENDABLE, with or without private keys) what it derives from index 0, or
     * the range's beginning where that is above 1,000,000, to its range's end and as far ahead of the next index as the
     * store keeps scripts. One that is known by its public text keeps its number and its scripts and takes on the rest
     * of the request. Of two paths the first is for receiving and the second for change. Only a descriptor without a
     * range that is not for change gets a label. Keys make spendable what they can spend by themselves or with known
     * scripts; what else the request names is watched.
     *
     * OUTRIGGER_STATUS_WALLET_LOCKED, also for no requests.
     *
     * Request: requests [list of import]. Response: [list of import_outcome].
     */
    OUTRIGGER_FN_WALLET_IMPORT = 15,
    /**
     * Reserves the wallet's one rescan and gives its number, which no other rescan had since the wallet was loaded.
     * OUTRIGGER_STATUS_WALLET_RESCANNING while one is reserved or runs.
     *
     * Request: nothing. Response: [u64].
     */
    OUTRIGGER_FN_WALLET_RESCAN_RESERVE = 16,
    /**
     * Gives a reservation back unused. Nothing where it is not reserved.
     *
     * Request: rescan [u64]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_RESCAN_RELEASE = 17,
    /**
     * Starts the reserved rescan at the first block whose running-maximum time is at least `from_time` less two hours,
     * up to where the wallet stands, then the whole mempool. Its end is told by OUTRIGGER_EVENT_RESCAN_FINISHED; then
     * its place is free. OUTRIGGER_STATUS_NOT_FOUND when this is not reserved.
     *
     * Request: rescan [u64], from_time [u64]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_RESCAN_START = 18,
    /**
     * Aborts the running rescan; whether there was one. A reserved one does not run.
     *
     * Request: nothing. Response: [bool].
     */
    OUTRIGGER_FN_WALLET_RESCAN_ABORT = 19,
    /**
     * Stores a text with a transaction (`comment`, `to`) in the place of the former one of the key; an empty one is
     * taken away. They are told sorted by key. OUTRIGGER_STATUS_NOT_FOUND for a transaction that the wallet does not
     * have; OUTRIGGER_STATUS_REFUSED for a text of more than 16,384 bytes.
     *
     * Request: txid [hash], key [text], value [text]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_SET_METADATA = 20,
    /**
     * Gives up a transaction that is neither in the chain nor in the mempool, and what of the wallet builds on it: what
     * they spend is free. Should one come back, it counts as if it had not been given up. Nothing for one that is given
     * up already. OUTRIGGER_STATUS_NOT_FOUND for one that the wallet does not have; OUTRIGGER_STATUS_REFUSED when it is
     * in the chain, in the mempool, or OUTRIGGER_TX_STATE_CONFLICTED.
     *
     * Request: txid [hash]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_ABANDON = 21,
    /**
     * Seals the wallet's keys with a passphrase and locks it. Unless it was made blank, a fresh master key gives the
     * active descriptors of each address type from then on; the former ones, imported ones included, stay as inactive
     * ones. OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is encrypted; OUTRIGGER_STATUS_REFUSED when it may not hold
     * private keys.
     *
     * Request: passphrase [secret]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_ENCRYPT = 22,
    /**
     * Unlocks an encrypted wallet for a time from now on, in seconds, at most 100,000,000. `unlocked_until` is told by
     * the node's clock. OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is not encrypted;
     * OUTRIGGER_STATUS_PASSPHRASE_INCORRECT, which leaves it as it was.
     *
     * Request: passphrase [secret], seconds [u64]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_UNLOCK = 23,
    /**
     * Locks it now; nothing where it is locked. OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is not encrypted.
     *
     * Request: nothing. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_LOCK = 24,
    /**
     * Changes the passphrase, and leaves it locked or unlocked. OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE when it is not
     * encrypted; OUTRIGGER_STATUS_PASSPHRASE_INCORRECT, which locks it.
     *
     * Request: old [secret], new [secret]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_CHANGE_PASSPHRASE = 25,
    /**
     * The address book, from the place `after` on: each entry once, in an order that does not change. Since minor 1.
     *
     * Request: after [optional bytes], limit [u32]. Response: [label_batch].
     */
    OUTRIGGER_FN_WALLET_LABELS = 26,
    /**
     * Derives scripts until `size` lie ahead of the next index of each active descriptor; none: as many as the host
     * keeps ahead. Where more do, they stay. OUTRIGGER_STATUS_REFUSED for more than 1,000,000;
     * OUTRIGGER_STATUS_WALLET_LOCKED. Since minor 1.
     *
     * Request: size [optional u32]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_REFILL_KEYPOOL = 27,
    /**
     * Sets whether the wallet avoids reused addresses. Since minor 1.
     *
     * Request: avoid [bool]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_SET_AVOID_REUSE = 28,
    /**
     * Writes a copy of the wallet as it is now to a file, which `restore` opens. Only a backup there is replaced. The
     * wallet itself then needs no backup until the next import. OUTRIGGER_STATUS_REFUSED when the file cannot be
     * written. Since minor 1.
     *
     * Request: file [text]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_BACKUP = 29,
    /**
     * Makes a wallet of a name from the file of a backup and loads it, as `load` does. Gives its warnings.
     * OUTRIGGER_STATUS_NOT_FOUND when there is no such file; OUTRIGGER_STATUS_WALLET_EXISTS;
     * OUTRIGGER_STATUS_WALLET_NOT_LOADED when it is no backup; OUTRIGGER_STATUS_REFUSED for a bad name. Since minor 1.
     *
     * Request: name [text], file [text], load_on_startup [optional bool]. Response: [list of text].
     */
    OUTRIGGER_FN_WALLET_RESTORE = 30,
    /**
     * Gives back an address that `new_address` gave and that is not needed, as that of the change of a payment which is
     * not made: its index is the next one again, and what was derived ahead stays. Whether it was: not where another
     * one was drawn since or a payment passed over it, nor for a key of the imported keypool. Since minor 1.
     *
     * Request: script [bytes]. Response: [bool].
     */
    OUTRIGGER_FN_WALLET_RETURN_ADDRESS = 31,
    /**
     * Sends a signed transaction of the wallet. It is stored with these texts (see `set_metadata`) before a byte of it
     * leaves the host, so that nothing else spends what it does: inactive, or in the mempool where the node is in the
     * host's process. Then it is offered to the mempool. Gives the answer; none where the node did not say whether it
     * took it, or is away, and where nothing is broadcast. It stays in any case, also where the mempool refuses it:
     * then it is inactive, what it spends is taken until it is given up (`abandon`), and it is offered again as all
     * that is inactive. A kill of the host leaves nothing of it before it is stored, and such a transaction after. One
     * that the wallet has already is only offered. Since minor 1.
     *
     * OUTRIGGER_STATUS_REFUSED where it neither pays to the wallet nor spends from it, or spends what another
     * transaction of the wallet does that is confirmed, in the mempool or inactive; and for a text of more than 16,384
     * bytes. With an error, nothing of it is stored or sent.
     *
     * Request: raw [bytes], metadata [list of (text, text)]. Response: [optional admission].
     */
    OUTRIGGER_FN_WALLET_SEND = 32,
    /**
     * The transactions of the wallet that spend each of these outpoints, in their order, whatever became of them. Since
     * minor 1.
     *
     * Request: outpoints [list of out_point]. Response: [list of list of hash].
     */
    OUTRIGGER_FN_WALLET_SPENDERS = 33,
    /**
     * Locks outputs, the wallet's or not: who makes payments does not choose them. One that a transaction of the wallet
     * spends (as for `coins`) is passed over. A lock ends when the wallet is unloaded, unless it is persistent; one
     * that is persistent stays so. A new transaction of the wallet that spends the output ends it, and with a payment
     * that `send` takes back it is there again. Since minor 1.
     *
     * Request: coins [list of out_point], persistent [bool]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_LOCK_COINS = 34,
    /**
     * Unlocks these outputs, and forgets persistent locks. Nothing for one that is not locked. Since minor 1.
     *
     * Request: coins [list of out_point]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_UNLOCK_COINS = 35,
    /**
     * The locked outputs: by the txid's internal bytes, then the output's number. Since minor 1.
     *
     * Request: nothing. Response: [list of out_point].
     */
    OUTRIGGER_FN_WALLET_LOCKED_COINS = 36,
    /**
     * Starts the reserved rescan as `rescan_start` does, at the height `first` and up to the height `last`; without one
     * up to where the wallet stands, then the whole mempool. OUTRIGGER_STATUS_NOT_FOUND when this is not reserved.
     * Since minor 1.
     *
     * Request: rescan [u64], first [u32], last [optional u32]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_RESCAN_HEIGHTS = 37,
    /**
     * The extended keys that the descriptors are written with, by public key and chain code; with private keys where
     * these are asked for and held. Of a locked wallet's descriptor with several keys, all count as held where some
     * are. OUTRIGGER_STATUS_WALLET_LOCKED when private ones are asked of a locked wallet; OUTRIGGER_STATUS_NOT_GRANTED
     * without the grant for its keys. Since minor 1.
     *
     * Request: private [bool]. Response: [list of hd_key].
     */
    OUTRIGGER_FN_WALLET_HD_KEYS = 38,
    /**
     * The private key of a public key of this HASH160, as WIF: of a descriptor that is written with it, or derives a
     * P2PKH, P2WPKH or P2SH-P2WPKH script of it, or imported. None where the wallet does not hold it.
     * OUTRIGGER_STATUS_WALLET_LOCKED; OUTRIGGER_STATUS_NOT_GRANTED without the grant for its keys. Since minor 1.
     *
     * Request: public_key_hash [array 20]. Response: [optional secret].
     */
    OUTRIGGER_FN_WALLET_PRIVATE_KEY = 39,
    /**
     * Takes over a transaction that pays to the wallet, at its position in a block of the best chain, as if the wallet
     * had met it there. OUTRIGGER_STATUS_NOT_FOUND when the block is none that the wallet has followed;
     * OUTRIGGER_STATUS_REFUSED when no output is the wallet's, or the bytes are no transaction. Since minor 1.
     *
     * Request: raw [bytes], block [hash], index [u32]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_ADD_CONFIRMED = 40,
    /**
     * Removes a transaction, as if it had never been met; it is met again where a block or the mempool has it.
     * OUTRIGGER_STATUS_NOT_FOUND for one that the wallet does not have. Since minor 1.
     *
     * Request: txid [hash]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_REMOVE_TRANSACTION = 41,
    /**
     * What holds for payments of the wallet: what the operator has set for all, and what `set_pay_feerate` has. Since
     * minor 1.
     *
     * Request: nothing. Response: [spend_settings].
     */
    OUTRIGGER_FN_WALLET_SPEND_SETTINGS = 42,
    /**
     * Sets the feerate of payments that name none, until the wallet is unloaded; none: it is estimated again. Since
     * minor 1.
     *
     * Request: feerate [optional u64]. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_SET_PAY_FEERATE = 43,
    /**
     * Sends a transaction as `send` does that takes the place of one of the wallet which is not confirmed: that this
     * spends the same is no reason to refuse it. Each of the two gets the other's id as a text (`replaces_txid`,
     * `replaced_by_txid`), also where the mempool refuses it. OUTRIGGER_STATUS_NOT_FOUND where the wallet does not have
     * the one to replace. Since minor 1.
     *
     * Request: replaced [hash], raw [bytes], metadata [list of (text, text)]. Response: [optional admission].
     */
    OUTRIGGER_FN_WALLET_REPLACE = 44,
    /**
     * Waits until no other call makes a payment of the wallet, and keeps others waiting until this call has ended:
     * called before a payment looks at the coins, it keeps two payments from choosing the same one. What the call reads
     * afterwards is the wallet as the payments before it left it. Nothing where this call has begun one already. A call
     * that takes longer than a minute keeps nobody waiting any more; should its payment then spend what another has
     * spent, `send` refuses it. Since minor 1.
     *
     * OUTRIGGER_STATUS_STALE once nobody waits for the call's answer; OUTRIGGER_STATUS_UNSUPPORTED for methods marked
     * `inline`, which may not wait, and outside of calls.
     *
     * Request: nothing. Response: [nothing].
     */
    OUTRIGGER_FN_WALLET_BEGIN_PAYMENT = 45,
    /**
     * What scripts of the wallet received, in no order that means anything. Only those are told that received something
     * which counts. All of them come at once: the answer takes some 32 bytes for each output. Since minor 1.
     *
     * Request: query [received_query]. Response: [list of received].
     */
    OUTRIGGER_FN_WALLET_RECEIVED = 46,
    /**
     * Imports descriptors of the wallet's own keys as `import` does; where it stored one, a wallet that was made blank
     * is blank no more. Since minor 1.
     *
     * Request: descriptors [list of descriptor_import]. Response: [list of import_outcome].
     */
    OUTRIGGER_FN_WALLET_ADD_OWN_DESCRIPTORS = 47,
    /**
     * Whether a transaction of the wallet has spent an output of each of these scripts while it was the wallet's, in
     * their order, whatever became of that transaction. Since minor 1.
     *
     * Request: scripts [list of bytes]. Response: [list of bool].
     */
    OUTRIGGER_FN_WALLET_SPENT_FROM = 48,
    /**
     * The sums of the wallet's coins, as `coins` lists them. Takes the same time however many coins there are, but for
     * those in the mempool, whose transactions are judged anew. Since minor 1.
     *
     * Request: query [balances_query]. Response: [balances].
     */
    OUTRIGGER_FN_WALLET_BALANCES = 49,
    /**
     * Whether each of these transactions of the wallet can be replaced (BIP 125), in their order; `Unknown` where the
     * wallet does not have it. The node is asked once for all those of the mempool that do not signal it themselves.
     * Since minor 1.
     *
     * Request: txids [list of hash]. Response: [list of replaceable].
     */
    OUTRIGGER_FN_WALLET_REPLACEABLE = 50,
    /**
     * The labels of the address book, each once and sorted: of its addresses with the purpose `send` where `sending` is
     * true, of the others where it is false, and of all where it is none. Since minor 1.
     *
     * Request: sending [optional bool]. Response: [list of text].
     */
    OUTRIGGER_FN_WALLET_LABEL_NAMES = 51,
    /**
     * The addresses with a label, in no order that means anything. Since minor 1.
     *
     * Request: label [text]. Response: [list of labelled_address].
     */
    OUTRIGGER_FN_WALLET_LABELLED = 52,
    /**
     * What was imported as keys and scripts, as descriptors without a range: each private key as `combo`, each other
     * script that is not OUTRIGGER_OWNERSHIP_NONE by what is known of it. With private keys where these are asked for
     * and held. OUTRIGGER_STATUS_WALLET_LOCKED when private ones are asked of a locked wallet;
     * OUTRIGGER_STATUS_NOT_GRANTED without the grant for its keys. Since minor 1.
     *
     * Request: private [bool]. Response: [list of descriptor_info].
     */
    OUTRIGGER_FN_WALLET_IMPORTED_DESCRIPTORS = 53,
};

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
    /**
     * Which of these public keys (33, 65 or 32 bytes) the wallet could sign with, for outputs with these scripts, in
     * their order. A locked wallet answers as an unlocked one would, except that of a descriptor with only some of its
     * private keys all keys count, and none of those behind a hardened wildcard.
     *
     * Request: scripts [list of bytes], public_keys [list of bytes]. Response: [list of bool].
     */
    OUTRIGGER_FN_SIGNER_AVAILABLE = 0,
    /**
     * Signs each request, in their order; none where the wallet has no such key for these scripts. The same request
     * gives the same signature. Fails whole with OUTRIGGER_STATUS_WALLET_LOCKED when the wallet is locked, also for no
     * requests.
     *
     * Request: batch [sign_batch]. Response: [list of optional bytes].
     */
    OUTRIGGER_FN_SIGNER_SIGN_MANY = 1,
};

/* ------------------------------------------------------------------------------------------------------------------
 * The service events/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The state of this instance's event queue. */
#define OUTRIGGER_SERVICE_EVENTS "events/1"

/** The positions of the functions of `events/1` in its table. */
enum {
    /**
     * How many events were dropped because the queue was full.
     *
     * Request: nothing. Response: [u64].
     */
    OUTRIGGER_FN_EVENTS_DROPPED = 0,
};

/* ------------------------------------------------------------------------------------------------------------------
 * The service log/1
 * ------------------------------------------------------------------------------------------------------------------ */

/** The host's log. */
#define OUTRIGGER_SERVICE_LOG "log/1"

/** The positions of the functions of `log/1` in its table. */
enum {
    /**
     * Writes one line, with the plugin's name beside it.
     *
     * Request: level [level], message [text]. Response: [nothing].
     */
    OUTRIGGER_FN_LOG_WRITE = 0,
    /**
     * Whether the host wants the text of a panic beside its place. It does not of a plugin that may use private keys or
     * wallets, whose text may hold a secret, unless the configuration says so. Since minor 1.
     *
     * Request: nothing. Response: [bool].
     */
    OUTRIGGER_FN_LOG_TELLS_PANICS = 1,
};

/* ------------------------------------------------------------------------------------------------------------------
 * The service node-rpc/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * The methods of the bitcoind that the host stands in front of.
 *
 * The configuration grants it for methods by name: `{ service = "node-rpc/1", methods = ["getblocktemplate"] }`. A call
 * is passed on as a client's would be that no plugin answers: `backend.deny` and the rule for wallet methods hold
 * (`Error` with code -32601), a `longpollid` waits in the host, and what the call changed has been followed before it
 * returns. The rights are those of the grant, not those of the user whose call the plugin answers.
 */
#define OUTRIGGER_SERVICE_NODE_RPC "node-rpc/1"

/** The positions of the functions of `node-rpc/1` in its table. */
enum {
    /**
     * Calls a method of the node and waits for its answer. `params` is the JSON text of an array or an object, of at
     * most 33,553,408 bytes. Since minor 1.
     *
     * Within a call it waits for as long as somebody waits for that call's answer: when its client has gone, its
     * deadline has passed or it was answered, it fails with OUTRIGGER_STATUS_STALE, and the node may have done what was
     * asked. Outside of calls it waits for at most 120 seconds. A method that uses it may not be `inline`.
     *
     * Fails with OUTRIGGER_STATUS_NOT_GRANTED for a method that is not granted, or that the node's own list refuses
     * (`rpcwhitelist`); with OUTRIGGER_STATUS_UNSUPPORTED where the host stands in front of no bitcoind, and in a call
     * of an inline method; with OUTRIGGER_STATUS_MALFORMED for other parameters; with OUTRIGGER_STATUS_NODE_UNAVAILABLE
     * while the node is away, starts, or takes no more work; with OUTRIGGER_STATUS_REFUSED for a result of more than
     * 67,108,864 bytes.
     *
     * Request: method [text], params [bytes]. Response: [node_reply].
     */
    OUTRIGGER_FN_NODE_RPC_CALL = 0,
};

#ifdef __cplusplus
}
#endif

#endif
