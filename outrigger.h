/*
 * outrigger.h: the plugin interface of Outrigger, version 1.1, for C11 and C++17.
 *
 * Written by `outrigger plugin header` from the Rust sources of the SDK.
 *
 * A plugin is a shared library that exports two symbols: `outrigger_manifest`, which says in JSON what the plugin is (made
 * by OUTRIGGER_MANIFEST), and `outrigger_plugin`, a table of functions (an outrigger_plugin_t that begins with
 * OUTRIGGER_PLUGIN_HEAD). The host reads the manifest without running any of the library's code. Link with nothing but
 * libc; build with
 *
 *     cc -std=c11 -O2 -fPIC -shared -I include -o liboutrigger_hello.so hello.c
 *
 * sdk/C.md has a whole plugin on one page. Two files beside this one are optional: outrigger_services.h has the services, their
 * functions and messages; outrigger_json.h reads arguments and writes answers.
 *
 * Rules that hold everywhere
 *
 * - Versions. The major version of plugin and host must be the same, and the host's minor version at least the one that the
 *   plugin says it needs. Structs only grow at their end: a field that is marked "Since minor N" is read only where the
 *   `struct_size` that the other side wrote covers it (OUTRIGGER_HAS), and a function only where its pointer is not null.
 *   The helpers in this file do both.
 * - Threads. The host calls a plugin from several threads at a time. A plugin may call the host and its services from any
 *   thread, from `init` until `stop` has returned, and within one scope from one thread at a time. A helper that works on its
 *   arguments alone runs on any thread, as long as no other thread uses the same arguments.
 * - Ownership. Memory is freed by the side that allocated it: outrigger_owned_bytes_t carries its own release function. The
 *   response of a service is the caller's to release, whatever the status is. A reply takes the owned bytes, or the contents
 *   of the writer, in every case and leaves them empty; the host may release them on any thread, also after `destroy`.
 * - Lifetimes. An outrigger_bytes_t that is passed to a function is valid until that function returns; what a helper writes is
 *   copied. Bytes that are read from a message point into it. A service's table stays valid for the life of the process.
 * - Failures. A reader or writer that has failed stays failed, so that one look at the end is enough. What could not be read is
 *   zero.
 * - Unwinding. No C++ exception, longjmp or thread exit may cross from the plugin into the host.
 *
 * Messages: how a service's requests and responses, and events, are encoded
 *
 * Integers are little-endian and of fixed width. `bool` is one byte, 0 or 1. `text` is a u32 length and as many bytes of
 * UTF-8, `secret` the same (wipe what you copy of it), `bytes` a u32 length and bytes. `hash` is 32 bytes in internal order,
 * the reverse of how it is printed; `array N` is N bytes. `optional X` is one byte, 0 or 1, and with 1 an X. `list of X` is a
 * u32 count and as many X. `framed X` is a u32 length in bytes and an X that takes as many: it is read as `bytes`. A message
 * with a name is its fields in their order, or one byte (its tag) and the fields of that tag. An event is an `event`.
 * Transactions, blocks and scripts are in Bitcoin's own serialisation.
 *
 * A request is written with outrigger_put_... in the order of its fields and sent by outrigger_ask_written(); its response is
 * read with outrigger_get_... in order. Each function in outrigger_services.h has the form `(name [encoding], ...) -> encoding`.
 * A newer host may append fields to the end of a message or a frame: what a reader does not know there it leaves unread. The
 * docs of the Rust crate outrigger-service describe functions and fields in full.
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

/* Versions --------------------------------------------------------------------------------------------------------- */

/** The major version of the interface. Host and plugin must have the same. */
#define OUTRIGGER_ABI_MAJOR 1u
/** The minor version of this header: what has been added since the major version began. */
#define OUTRIGGER_ABI_MINOR 1u
/** Begins an outrigger_plugin_t: `OUTRIGPL`. */
#define OUTRIGGER_PLUGIN_MAGIC UINT64_C(0x4c5047495254554f)

/* Structs and functions -------------------------------------------------------------------------------------------- */

/** Bytes that the callee may read until the function returns. */
typedef struct outrigger_bytes_t {
    /** The first byte; may be null when `len` is 0. */
    const uint8_t *ptr;
    /** The number of bytes. */
    size_t len;
} outrigger_bytes_t;

OUTRIGGER_SIZE_IS(outrigger_bytes_t, 16);
OUTRIGGER_OFFSET_IS(outrigger_bytes_t, ptr, 0);
OUTRIGGER_OFFSET_IS(outrigger_bytes_t, len, 8);

/**
 * Releases owned bytes.
 *
 * Threads: any, once, even while other functions of the same plugin run.
 * Ownership: returns `owner` and its bytes to the side that made them.
 * Lifetime: may be called after the instance that made the bytes was destroyed, so it must not use that instance.
 */
typedef void (*outrigger_release_fn_t)(void *owner);

/** Bytes that the receiver releases with their function, from any thread. Nobody writes them once passed on. */
typedef struct outrigger_owned_bytes_t {
    /** The first byte; may be null when `len` is 0. */
    const uint8_t *ptr;
    /** The number of bytes. */
    size_t len;
    /** The argument of `release`. */
    void *owner;
    /** Releases the bytes; null if there is nothing to release. */
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
 * `scope` is the token of the call for which it works, or 0. If the status is 0, `response` has the encoded result;
 * otherwise the status is an OUTRIGGER_STATUS_..., and `response` has the detail as UTF-8.
 *
 * Threads: any, from `init` until `stop` returns; one thread at a time per scope. Later the status is
 * OUTRIGGER_STATUS_STALE.
 * Ownership: `request` stays the caller's. `response` is written, not read; the caller always releases it.
 * Lifetime: `request` is read until the function returns; `response` stays valid until it is released. A scope ends
 * when `call` returns for its token.
 */
typedef int32_t (*outrigger_service_fn_t)(
    const void *ctx, uint64_t scope, outrigger_bytes_t request, outrigger_owned_bytes_t *response);

/**
 * The head of a service's table. Its functions follow, one pointer each, as many as `struct_size` covers.
 *
 * The table stays valid for the life of the process, even after the instance that found it has ended.
 */
typedef struct outrigger_service_t {
    /** The size of the table in bytes, functions included. */
    size_t struct_size;
    /** The first argument of each function. */
    const void *ctx;
} outrigger_service_t;

OUTRIGGER_SIZE_IS(outrigger_service_t, 16);
OUTRIGGER_OFFSET_IS(outrigger_service_t, struct_size, 0);
OUTRIGGER_OFFSET_IS(outrigger_service_t, ctx, 8);

/**
 * Finds a service by name and revision, such as `chain/1`; null if it is unknown or not granted.
 *
 * Threads: any, from `init` until `stop` returns. Later it is null.
 * Ownership: `name` stays the plugin's, the table the host's.
 * Lifetime: `name` is read until the function returns; the table stays valid for the life of the process.
 */
typedef const outrigger_service_t *(*outrigger_service_lookup_fn_t)(const void *ctx, outrigger_bytes_t name);

/**
 * Answers a call, exactly once. With `code` 0, `body` is the result as a line of JSON, else the message as UTF-8.
 *
 * The status is 0, or OUTRIGGER_STATUS_STALE if the call was answered, cancelled or timed out before.
 *
 * Threads: any, during `call` or later, until `stop` returns. After that the status is OUTRIGGER_STATUS_STALE.
 * Ownership: the host takes `body` in every case, and releases it on any thread.
 * Lifetime: `body` may be released after `destroy`. After the answer the token is invalid.
 */
typedef int32_t (*outrigger_reply_fn_t)(const void *ctx, uint64_t token, int32_t code, outrigger_owned_bytes_t body);

/**
 * Whether a call still waits for its answer: 1 if so, 0 once it was answered, cancelled or timed out. A long call
 * should check this now and then, and stop when nobody waits. Since minor 1.
 *
 * Threads: any, from `init` until `stop` returns. Later it is 0.
 * Ownership: nothing changes hands.
 * Lifetime: any token may be passed, even that of a call long ended.
 */
typedef int32_t (*outrigger_wanted_fn_t)(const void *ctx, uint64_t token);

/**
 * The host, as a plugin sees it.
 *
 * This table, the service tables and the plugin's library stay in place for the life of the process. A plugin must end
 * its threads in `stop`. A later call reads no freed memory and has no effect: it finds no service, and its answer is
 * refused with OUTRIGGER_STATUS_STALE.
 */
typedef struct outrigger_host_t {
    /** The size of this struct in bytes. */
    size_t struct_size;
    /** The host's major version of the interface. */
    uint32_t abi_major;
    /** The host's minor version. */
    uint32_t abi_minor;
    /** The first argument of each function. */
    const void *ctx;
    /** Finds a service. */
    outrigger_service_lookup_fn_t service;
    /** Answers a call. */
    outrigger_reply_fn_t reply;
    /** Says whether a call still waits. Since minor 1. */
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
    /** The size of this struct in bytes. */
    size_t struct_size;
    /** The call's identifier, for its reply and as the scope of services. Never 0. */
    uint64_t token;
    /** The method's name. */
    outrigger_bytes_t method;
    /** The arguments: a JSON array in the manifest's order, with `null` for omitted ones. */
    outrigger_bytes_t params;
    /** The milliseconds until the host answers in the plugin's place; 0 for never. Since minor 1. */
    uint64_t deadline_ms;
    /**
     * The low 16 bits: the major release of Bitcoin Core that the answer follows, for example 29; 0 from a host that
     * does not say. Each bit above is a deprecated feature that the operator keeps: 16 removeprunedfunds, 17 bip125.
     * Since minor 1.
     */
    uint64_t release;
} outrigger_call_t;

OUTRIGGER_SIZE_IS(outrigger_call_t, 64);
OUTRIGGER_OFFSET_IS(outrigger_call_t, struct_size, 0);
OUTRIGGER_OFFSET_IS(outrigger_call_t, token, 8);
OUTRIGGER_OFFSET_IS(outrigger_call_t, method, 16);
OUTRIGGER_OFFSET_IS(outrigger_call_t, params, 32);
OUTRIGGER_OFFSET_IS(outrigger_call_t, deadline_ms, 48);
OUTRIGGER_OFFSET_IS(outrigger_call_t, release, 56);

/**
 * Makes an instance; null is a failure.
 *
 * A host may have several instances of a library at a time, for example while it reloads a plugin. So an instance keeps
 * its state in itself, not in static variables.
 *
 * Threads: any; called before every other function, and may not call the host.
 * Ownership: the instance is the plugin's. The host only passes it on, and returns it to `destroy`.
 * Lifetime: the instance lives until `destroy`.
 */
typedef void *(*outrigger_create_fn_t)(void);

/**
 * Passes an instance its host and its options, a JSON object with a value for each option of the manifest.
 *
 * A status other than 0 is a refusal, with its reason in `error` as UTF-8; `stop` and `destroy` follow.
 *
 * Threads: one, while no other function of the instance runs. Services may be used, but no calls come yet.
 * Ownership: `host` and `options` stay the host's; bytes written to `error` become the host's.
 * Lifetime: `host` stays valid for the life of the process, `options` until this function returns.
 */
typedef int32_t (*outrigger_init_fn_t)(
    void *instance, const outrigger_host_t *host, outrigger_bytes_t options, outrigger_owned_bytes_t *error);

/**
 * Starts the instance: all services are ready. If the status is 0, calls follow; a refusal is as for `init`.
 *
 * Threads: one, while no other function of the instance runs. The plugin may start its own threads here.
 * Ownership: bytes written to `error` become the host's.
 * Lifetime: `error` is writable until the function returns.
 */
typedef int32_t (*outrigger_start_fn_t)(void *instance, outrigger_owned_bytes_t *error);

/**
 * Runs a call. The plugin answers it once, before or after this returns. A status other than 0 is a fault of the
 * plugin; then the host answers the call unless it was answered.
 *
 * Threads: several at a time, each with a different call.
 * Ownership: the frame and the bytes in it stay the host's.
 * Lifetime: the frame is valid until this function returns. A plugin that answers later must copy the parameters. The
 * scope of the token ends then, too; for the reply the token stays valid.
 */
typedef int32_t (*outrigger_call_fn_t)(void *instance, const outrigger_call_t *frame);

/**
 * Tells the plugin that a call's client is gone or its time is over: nobody reads an answer. If this comes while `call`
 * runs, it comes again when `call` returns without an answer, so that a plugin that keeps tokens cannot miss it.
 *
 * Threads: any, beside `call`, `event` and `quiesce`.
 * Ownership: nothing changes hands.
 * Lifetime: the token needs no answer; an answer is refused as stale.
 */
typedef int32_t (*outrigger_cancel_fn_t)(void *instance, uint64_t token);

/**
 * Handles an event that the manifest subscribes to. A status other than 0 is a fault of the plugin.
 *
 * Threads: one per instance, so events come one at a time and in order, beside all other functions.
 * Ownership: the event's bytes stay the host's.
 * Lifetime: the bytes are valid until this function returns.
 */
typedef int32_t (*outrigger_event_fn_t)(void *instance, outrigger_bytes_t event);

/**
 * Tells the plugin that no call follows, and that it should answer open calls. Later the host answers the rest.
 *
 * Threads: any, once, while calls, cancels and events may still run.
 * Ownership: nothing changes hands.
 * Lifetime: the host may be called until `stop` returns.
 */
typedef int32_t (*outrigger_quiesce_fn_t)(void *instance);

/**
 * Ends the instance's work, above all its threads. After it returns the plugin may not call the host.
 *
 * Threads: one, while no other function of the instance runs.
 * Ownership: nothing changes hands.
 * Lifetime: the host's table and the service tables stay valid for the life of the process. A later call of the host is
 * refused with OUTRIGGER_STATUS_STALE.
 */
typedef int32_t (*outrigger_stop_fn_t)(void *instance);

/**
 * Frees the instance.
 *
 * Threads: one, once, while no other function of the instance runs; may not call the host.
 * Ownership: returns the instance to the plugin.
 * Lifetime: replies whose bytes the host has not released outlive the instance.
 */
typedef void (*outrigger_destroy_fn_t)(void *instance);

/**
 * The table that a plugin exports as `outrigger_plugin`.
 *
 * The host calls, in this order: `create`, `init` and `start` once each; then `call`, `cancel` and `event` on several
 * threads at a time; then `quiesce`, `stop` and `destroy` once each. `create`, `init`, `start`, `call` and `destroy`
 * must be present; the others may be null.
 */
typedef struct outrigger_plugin_t {
    /** OUTRIGGER_PLUGIN_MAGIC. */
    uint64_t magic;
    /** The size of this struct in bytes. */
    size_t struct_size;
    /** The major version of the interface that it was built for. */
    uint32_t abi_major;
    /** The least minor version of a host on which it runs. */
    uint32_t abi_minor_needed;
    /** The minor version that it was built with. */
    uint32_t abi_minor_built;
    /** Zero. */
    uint32_t reserved;
    /** Makes an instance. */
    outrigger_create_fn_t create;
    /** Passes the host and the options. */
    outrigger_init_fn_t init;
    /** Starts the instance: calls follow. */
    outrigger_start_fn_t start;
    /** Runs a call. */
    outrigger_call_fn_t call;
    /** Tells the plugin that nobody waits for a call's answer. */
    outrigger_cancel_fn_t cancel;
    /** Handles an encoded `event`. */
    outrigger_event_fn_t event;
    /** Tells the plugin that no call follows. */
    outrigger_quiesce_fn_t quiesce;
    /** Ends the instance's work. */
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

/* Statuses and codes ----------------------------------------------------------------------------------------------- */

/** What functions answer: 0, or which kind of trouble there was. One that is not listed here is a newer host's, and means
 *  as much as OUTRIGGER_STATUS_INTERNAL. */
enum {
    OUTRIGGER_STATUS_OK = 0, /* Success. */
    OUTRIGGER_STATUS_STALE = 1, /* The call, wallet or cursor of the request is gone. */
    OUTRIGGER_STATUS_MALFORMED = 2, /* The request is malformed, or a value in it is out of range. */
    OUTRIGGER_STATUS_UNSUPPORTED = 3, /* The other side lacks this function. */
    OUTRIGGER_STATUS_NOT_GRANTED = 4, /* The configuration does not grant this. */
    OUTRIGGER_STATUS_STORAGE = 5, /* The storage failed; nothing was changed. */
    OUTRIGGER_STATUS_NOT_FOUND = 6, /* The request names something that does not exist. */
    OUTRIGGER_STATUS_REFUSED = 7, /* A rule forbids it; the detail says why, in the caller's terms. */
    OUTRIGGER_STATUS_WALLET_NOT_LOADED = 8, /* The named wallet is not loaded. */
    OUTRIGGER_STATUS_NO_WALLET = 9, /* No wallet is loaded at all. */
    OUTRIGGER_STATUS_WALLET_NOT_SPECIFIED = 10, /* Several wallets are loaded and the call names none. */
    OUTRIGGER_STATUS_WALLET_LOCKED = 11, /* The wallet is encrypted and locked. */
    OUTRIGGER_STATUS_WALLET_RESCANNING = 12, /* A rescan of the wallet is running. */
    OUTRIGGER_STATUS_SHUTTING_DOWN = 13, /* The host is stopping. */
    OUTRIGGER_STATUS_WALLET_ALREADY_LOADED = 14, /* The wallet is loaded already. */
    OUTRIGGER_STATUS_WALLET_EXISTS = 15, /* A wallet of that name exists. */
    OUTRIGGER_STATUS_PASSPHRASE_INCORRECT = 16, /* The passphrase is wrong. */
    /* The wallet is not in the encryption state that the request needs. */
    OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE = 17,
    OUTRIGGER_STATUS_INTERNAL = 18, /* The service failed internally; the log has the details. */
    OUTRIGGER_STATUS_KEYPOOL_RAN_OUT = 19, /* No new address can be derived. */
    OUTRIGGER_STATUS_NODE_UNAVAILABLE = 20, /* The node cannot be reached, or is not ready. */
};

/** The codes of JSON-RPC errors, as bitcoind uses them. A plugin may answer with one of its own. */
enum {
    OUTRIGGER_CODE_MISC = -1, /* An exception in a handler, a wrong JSON type, or a wrong number of arguments. */
    OUTRIGGER_CODE_TYPE = -3, /* A value is not of its declared type. */
    OUTRIGGER_CODE_WALLET = -4, /* The wallet refuses, for its state or policy. */
    /* An invalid key, address or descriptor, or an unknown block or transaction. */
    OUTRIGGER_CODE_INVALID_ADDRESS_OR_KEY = -5,
    OUTRIGGER_CODE_WALLET_INSUFFICIENT_FUNDS = -6, /* Not enough funds for the payment. */
    OUTRIGGER_CODE_OUT_OF_MEMORY = -7, /* Out of memory. */
    OUTRIGGER_CODE_INVALID_PARAMETER = -8, /* A value is out of range. */
    OUTRIGGER_CODE_CLIENT_NOT_CONNECTED = -9, /* Not connected, or shutting down. */
    OUTRIGGER_CODE_CLIENT_IN_INITIAL_DOWNLOAD = -10, /* Still downloading the chain. */
    OUTRIGGER_CODE_WALLET_INVALID_LABEL = -11, /* A label is not allowed. */
    OUTRIGGER_CODE_WALLET_KEYPOOL_RAN_OUT = -12, /* No new address can be derived. */
    OUTRIGGER_CODE_WALLET_UNLOCK_NEEDED = -13, /* The wallet is locked. */
    OUTRIGGER_CODE_WALLET_PASSPHRASE_INCORRECT = -14, /* The passphrase is wrong. */
    OUTRIGGER_CODE_WALLET_WRONG_ENC_STATE = -15, /* An encryption command does not fit the wallet's state. */
    OUTRIGGER_CODE_WALLET_ENCRYPTION_FAILED = -16, /* Encrypting the wallet failed. */
    OUTRIGGER_CODE_WALLET_NOT_FOUND = -18, /* No such wallet, or none is loaded. */
    OUTRIGGER_CODE_WALLET_NOT_SPECIFIED = -19, /* Several wallets are loaded, and the call names none. */
    OUTRIGGER_CODE_DATABASE = -20, /* The database is corrupt. */
    OUTRIGGER_CODE_DESERIALIZATION = -22, /* A transaction, block or previous output cannot be decoded. */
    OUTRIGGER_CODE_CLIENT_NODE_ALREADY_ADDED = -23, /* A node was added, or an address banned, before. */
    OUTRIGGER_CODE_CLIENT_NODE_NOT_ADDED = -24, /* A node was not added. */
    OUTRIGGER_CODE_VERIFY = -25, /* Verification failed. */
    OUTRIGGER_CODE_VERIFY_REJECTED = -26, /* The rules refuse a transaction or block. */
    OUTRIGGER_CODE_VERIFY_ALREADY_IN_CHAIN = -27, /* The transaction is in the chain already. */
    OUTRIGGER_CODE_IN_WARMUP = -28, /* The host is still starting. */
    OUTRIGGER_CODE_CLIENT_NODE_NOT_CONNECTED = -29, /* A node is not connected. */
    OUTRIGGER_CODE_CLIENT_INVALID_IP_OR_SUBNET = -30, /* An IP address or subnet is invalid, or was not banned. */
    OUTRIGGER_CODE_CLIENT_P2P_DISABLED = -31, /* The connection manager is missing. */
    OUTRIGGER_CODE_METHOD_DEPRECATED = -32, /* The method is deprecated. */
    OUTRIGGER_CODE_CLIENT_MEMPOOL_DISABLED = -33, /* The mempool is missing. */
    OUTRIGGER_CODE_WALLET_ALREADY_LOADED = -35, /* The wallet is loaded already. */
    OUTRIGGER_CODE_WALLET_ALREADY_EXISTS = -36, /* A wallet of that name exists. */
    OUTRIGGER_CODE_INVALID_REQUEST = -32600, /* The request is no request object (HTTP 400). */
    OUTRIGGER_CODE_METHOD_NOT_FOUND = -32601, /* The method is unknown (HTTP 404). */
    OUTRIGGER_CODE_INVALID_PARAMS = -32602, /* Parameters contradict stored data. */
    OUTRIGGER_CODE_INTERNAL = -32603, /* The host or a plugin failed internally. */
    OUTRIGGER_CODE_PARSE = -32700, /* The body is not JSON. */
};

/* What a plugin exports -------------------------------------------------------------------------------------------- */

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

/* Bytes ------------------------------------------------------------------------------------------------------------ */

/** Bytes that are nobody's: what an outrigger_owned_bytes_t begins with. */
#define OUTRIGGER_NO_BYTES { NULL, 0, NULL, NULL }

/** A C string as bytes, without its terminating zero. */
static inline outrigger_bytes_t outrigger_text(const char *text)
{
    outrigger_bytes_t bytes;
    bytes.ptr = (const uint8_t *)text;
    bytes.len = strlen(text);
    return bytes;
}

/** Whether bytes are those of a C string. */
static inline bool outrigger_is(outrigger_bytes_t bytes, const char *text)
{
    return bytes.len == strlen(text) && (bytes.len == 0 || memcmp(bytes.ptr, text, bytes.len) == 0);
}

/** Owned bytes, lent. */
static inline outrigger_bytes_t outrigger_lend(const outrigger_owned_bytes_t *owned)
{
    outrigger_bytes_t bytes;
    bytes.ptr = owned->ptr;
    bytes.len = owned->len;
    return bytes;
}

/** Releases owned bytes, and leaves none. May be called again, and with OUTRIGGER_NO_BYTES. */
static inline void outrigger_release(outrigger_owned_bytes_t *owned)
{
    if (owned->release != NULL) {
        owned->release(owned->owner);
    }
    memset(owned, 0, sizeof *owned);
}

/** Frees memory that came from malloc: the release function of what this file makes. */
static inline void outrigger_free_memory(void *memory)
{
    free(memory);
}

/** Owned bytes that are a copy of others. False when there is no memory; `*owned` is OUTRIGGER_NO_BYTES then. */
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

/* Reading messages ------------------------------------------------------------------------------------------------- */

/** Goes through a message, and never beyond it. */
typedef struct outrigger_reader_t {
    /** What is read next. */
    const uint8_t *at;
    /** The bytes from there to the end. */
    size_t left;
    /** Whether the message was damaged. */
    bool failed;
} outrigger_reader_t;

/** A hash, in internal order: the reverse of how it is printed. */
typedef struct outrigger_hash_t {
    /** Its bytes. */
    uint8_t bytes[32];
} outrigger_hash_t;

/** A reader of bytes. */
static inline outrigger_reader_t outrigger_read(outrigger_bytes_t bytes)
{
    outrigger_reader_t reader;
    reader.at = bytes.ptr;
    reader.left = bytes.len;
    reader.failed = false;
    return reader;
}

/** Marks a reader as failed. False. */
static inline bool outrigger_fail(outrigger_reader_t *reader)
{
    reader->failed = true;
    reader->left = 0;
    return false;
}

/** The next `len` bytes. */
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

/** Goes on behind the next `len` bytes. */
static inline bool outrigger_skip(outrigger_reader_t *reader, size_t len)
{
    const uint8_t *skipped = NULL;
    return outrigger_take(reader, len, &skipped);
}

/** An unsigned integer of `width` bytes, at most eight. */
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

/** [u8] */
static inline bool outrigger_get_u8(outrigger_reader_t *reader, uint8_t *out)
{
    uint64_t number = 0;
    bool good = outrigger_get_unsigned(reader, 1, &number);
    *out = (uint8_t)number;
    return good;
}

/** [u32] */
static inline bool outrigger_get_u32(outrigger_reader_t *reader, uint32_t *out)
{
    uint64_t number = 0;
    bool good = outrigger_get_unsigned(reader, 4, &number);
    *out = (uint32_t)number;
    return good;
}

/** [u64] */
static inline bool outrigger_get_u64(outrigger_reader_t *reader, uint64_t *out)
{
    return outrigger_get_unsigned(reader, 8, out);
}

/** [i32] */
static inline bool outrigger_get_i32(outrigger_reader_t *reader, int32_t *out)
{
    uint32_t number = 0;
    bool good = outrigger_get_u32(reader, &number);
    memcpy(out, &number, sizeof *out);
    return good;
}

/** [i64] */
static inline bool outrigger_get_i64(outrigger_reader_t *reader, int64_t *out)
{
    uint64_t number = 0;
    bool good = outrigger_get_u64(reader, &number);
    memcpy(out, &number, sizeof *out);
    return good;
}

/** [bool] */
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

/** So many bytes, copied. */
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

/** [hash] */
static inline bool outrigger_get_hash(outrigger_reader_t *reader, outrigger_hash_t *out)
{
    return outrigger_get_fixed(reader, out->bytes, sizeof out->bytes);
}

/** [bytes, text or secret] */
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

/** Goes on behind [bytes]. */
static inline bool outrigger_skip_bytes(outrigger_reader_t *reader)
{
    outrigger_bytes_t skipped;
    return outrigger_get_bytes(reader, &skipped);
}

/* Writing ---------------------------------------------------------------------------------------------------------- */

/** What was written, in memory from malloc that grows as needed. */
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

/** Overwrites memory, also where the compiler sees that nobody reads it any more. */
static inline void outrigger_wipe(void *memory, size_t len)
{
    volatile uint8_t *bytes = (volatile uint8_t *)memory;
    size_t at = 0;
    for (at = 0; at < len; at++) {
        bytes[at] = 0;
    }
}

/** Gives back what a writer holds, and leaves it empty. */
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

/** What was written, lent. */
static inline outrigger_bytes_t outrigger_written(const outrigger_writer_t *writer)
{
    outrigger_bytes_t bytes;
    bytes.ptr = writer->bytes;
    bytes.len = writer->len;
    return bytes;
}

/** Makes room for `more` bytes. False when there is none. */
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

/** Appends bytes as they are. */
static inline void outrigger_append(outrigger_writer_t *writer, const void *bytes, size_t len)
{
    if (len > 0 && outrigger_reserve(writer, len)) {
        memcpy(writer->bytes + writer->len, bytes, len);
        writer->len += len;
    }
}

/** Appends an unsigned integer of `width` bytes, at most eight. */
static inline void outrigger_put_unsigned(outrigger_writer_t *writer, size_t width, uint64_t value)
{
    uint8_t bytes[8];
    size_t at = 0;
    for (at = 0; at < sizeof bytes; at++) {
        bytes[at] = (uint8_t)(value >> (8 * at) & 0xff);
    }
    outrigger_append(writer, bytes, width);
}

/** [u8] */
static inline void outrigger_put_u8(outrigger_writer_t *writer, uint8_t value)
{
    outrigger_put_unsigned(writer, 1, value);
}

/** [u32] */
static inline void outrigger_put_u32(outrigger_writer_t *writer, uint32_t value)
{
    outrigger_put_unsigned(writer, 4, value);
}

/** [u64] */
static inline void outrigger_put_u64(outrigger_writer_t *writer, uint64_t value)
{
    outrigger_put_unsigned(writer, 8, value);
}

/** [i32] */
static inline void outrigger_put_i32(outrigger_writer_t *writer, int32_t value)
{
    outrigger_put_unsigned(writer, 4, (uint32_t)value);
}

/** [i64] */
static inline void outrigger_put_i64(outrigger_writer_t *writer, int64_t value)
{
    outrigger_put_unsigned(writer, 8, (uint64_t)value);
}

/** [bool] */
static inline void outrigger_put_bool(outrigger_writer_t *writer, bool value)
{
    outrigger_put_unsigned(writer, 1, value ? 1 : 0);
}

/** [hash] */
static inline void outrigger_put_hash(outrigger_writer_t *writer, const outrigger_hash_t *value)
{
    outrigger_append(writer, value->bytes, sizeof value->bytes);
}

/** The count of a list or the length of bytes. */
static inline void outrigger_put_count(outrigger_writer_t *writer, size_t count)
{
    if (count > UINT32_MAX) {
        writer->failed = true;
    }
    outrigger_put_unsigned(writer, 4, count);
}

/** [bytes, text or secret] */
static inline void outrigger_put_bytes(outrigger_writer_t *writer, outrigger_bytes_t value)
{
    outrigger_put_count(writer, value.len);
    outrigger_append(writer, value.ptr, value.len);
}

/* The host --------------------------------------------------------------------------------------------------------- */

/**
 * A service by its name and revision (OUTRIGGER_SERVICE_...); null when it is not granted. To be asked for in `init`.
 */
static inline const outrigger_service_t *outrigger_find_service(const outrigger_host_t *host, const char *name)
{
    return host->service(host->ctx, outrigger_text(name));
}

/** Answers a call with bytes that the host takes over: with `code` 0 one line of JSON, else the message of an error. */
static inline int32_t outrigger_reply(
    const outrigger_host_t *host, uint64_t token, int32_t code, outrigger_owned_bytes_t *body)
{
    outrigger_owned_bytes_t given = *body;
    memset(body, 0, sizeof *body);
    return host->reply(host->ctx, token, code, given);
}

/** Answers a call with an error: one of OUTRIGGER_CODE_..., or a code of the plugin's own, which must not be 0. */
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

/** Answers a call with a result: one line of JSON. */
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
 */
static inline int32_t outrigger_reply_failure(
    const outrigger_host_t *host, uint64_t token, int32_t status, outrigger_owned_bytes_t *detail)
{
    static const struct {
        int32_t status, code;
        bool fixed;
        const char *message;
    } failures[] = {
        { OUTRIGGER_STATUS_STALE, OUTRIGGER_CODE_INTERNAL, false, "Internal error" },
        { OUTRIGGER_STATUS_MALFORMED, OUTRIGGER_CODE_INTERNAL, false, "Internal error" },
        { OUTRIGGER_STATUS_UNSUPPORTED, OUTRIGGER_CODE_INTERNAL, false, "Internal error" },
        { OUTRIGGER_STATUS_NOT_GRANTED, OUTRIGGER_CODE_INTERNAL, false, "The plugin lacks a grant" },
        { OUTRIGGER_STATUS_STORAGE, OUTRIGGER_CODE_DATABASE, false, "The storage failed; nothing was changed" },
        { OUTRIGGER_STATUS_NOT_FOUND, OUTRIGGER_CODE_INVALID_ADDRESS_OR_KEY, false, "Not found" },
        { OUTRIGGER_STATUS_REFUSED, OUTRIGGER_CODE_WALLET, false, "" },
        { OUTRIGGER_STATUS_WALLET_NOT_LOADED, OUTRIGGER_CODE_WALLET_NOT_FOUND, false, "Requested wallet does not exist or is not loaded" },
        { OUTRIGGER_STATUS_NO_WALLET, OUTRIGGER_CODE_WALLET_NOT_FOUND, true, "No wallet is loaded. Load a wallet using loadwallet or create a new one with createwallet. (Note: A default wallet is no longer automatically created)" },
        { OUTRIGGER_STATUS_WALLET_NOT_SPECIFIED, OUTRIGGER_CODE_WALLET_NOT_SPECIFIED, true, "Multiple wallets are loaded. Please select which wallet to use by requesting the RPC through the /wallet/<walletname> URI path." },
        { OUTRIGGER_STATUS_WALLET_LOCKED, OUTRIGGER_CODE_WALLET_UNLOCK_NEEDED, true, "Error: Please enter the wallet passphrase with walletpassphrase first." },
        { OUTRIGGER_STATUS_WALLET_RESCANNING, OUTRIGGER_CODE_WALLET, true, "Wallet is currently rescanning. Abort existing rescan or wait." },
        { OUTRIGGER_STATUS_SHUTTING_DOWN, OUTRIGGER_CODE_CLIENT_NOT_CONNECTED, true, "Shutting down" },
        { OUTRIGGER_STATUS_WALLET_ALREADY_LOADED, OUTRIGGER_CODE_WALLET_ALREADY_LOADED, false, "" },
        { OUTRIGGER_STATUS_WALLET_EXISTS, OUTRIGGER_CODE_WALLET, false, "" },
        { OUTRIGGER_STATUS_PASSPHRASE_INCORRECT, OUTRIGGER_CODE_WALLET_PASSPHRASE_INCORRECT, false, "Error: The wallet passphrase entered was incorrect." },
        { OUTRIGGER_STATUS_WRONG_ENCRYPTION_STATE, OUTRIGGER_CODE_WALLET_WRONG_ENC_STATE, false, "" },
        { OUTRIGGER_STATUS_INTERNAL, OUTRIGGER_CODE_INTERNAL, false, "Internal error" },
        { OUTRIGGER_STATUS_KEYPOOL_RAN_OUT, OUTRIGGER_CODE_WALLET_KEYPOOL_RAN_OUT, false, "Error: Keypool ran out, please call keypoolrefill first" },
        { OUTRIGGER_STATUS_NODE_UNAVAILABLE, OUTRIGGER_CODE_IN_WARMUP, false, "The node cannot be reached" },
    };
    int32_t code = OUTRIGGER_CODE_INTERNAL;
    const char *message = "Internal error";
    bool fixed = false;
    size_t at = 0;
    for (at = 0; at < sizeof failures / sizeof failures[0]; at++) {
        if (failures[at].status == status) {
            code = failures[at].code;
            message = failures[at].message;
            fixed = failures[at].fixed;
        }
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

/** Asks as outrigger_ask() does, with what was written; OUTRIGGER_STATUS_INTERNAL when it could not be. */
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
 * Whether a call still waits for its answer. A call that works for long asks now and then, and stops when nobody waits. On a
 * host of minor 0, which cannot tell, it always does. Since minor 1.
 */
static inline bool outrigger_is_wanted(const outrigger_host_t *host, uint64_t token)
{
    return !OUTRIGGER_HAS(outrigger_host_t, host, wanted) || host->wanted(host->ctx, token) != 0;
}

/**
 * When the host answers a call in the plugin's place, in milliseconds from now; 0 for never, or where the host does not say.
 * Since minor 1.
 */
static inline uint64_t outrigger_deadline_ms(const outrigger_call_t *call)
{
    return OUTRIGGER_HAS(outrigger_call_t, call, deadline_ms) ? call->deadline_ms : 0;
}

#ifdef __cplusplus
}
#endif

#endif
