/*
 * outrigger_services.h: The messages of the services, and a typed function for each function of a service. Optional; outrigger.h says what holds everywhere.
 *
 * Generated from the Rust sources of the SDK by `outrigger plugin header`. Change those, not this file.
 */
#ifndef OUTRIGGER_SERVICES_H
#define OUTRIGGER_SERVICES_H

#include "outrigger.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/** A topic that is published over ZMQ at an address. */
typedef struct outrigger_publication_t {
    /** The topic, as getzmqnotifications names it: `pubhashblock`. [text] */
    outrigger_bytes_t topic;
    /** Where subscribers connect. [text] */
    outrigger_bytes_t address;
    /** How many messages wait for a subscriber. [u32] */
    uint32_t high_water_mark;
} outrigger_publication_t;

/** A file of the unspent outputs as of a block. */
typedef struct outrigger_coins_dump_t {
    /** The number of the outputs. [u64] */
    uint64_t coins;
    /** The hash over them (`hash_serialized_3` of gettxoutsetinfo), in the order of its bytes in memory. [array 32] */
    outrigger_array32_t hash;
    /** The number of transactions of the chain up to the block. [u64] */
    uint64_t transactions;
    /** Where the file is. [text] */
    outrigger_bytes_t path;
} outrigger_coins_dump_t;

/** An unspent output that a search found. */
typedef struct outrigger_found_coin_t {
    /** The output. [unspent_output] */
    outrigger_unspent_output_t output;
    /** The block of the best chain that made it. [hash] */
    outrigger_hash_t block;
} outrigger_found_coin_t;

/** What a search among some of the unspent outputs came to. */
typedef struct outrigger_coin_search_t {
    /** The outputs that hold one of the scripts. [list of found_coin] */
    outrigger_list_t found;
    /** How many outputs were looked at; 0 where none follows. [u32] */
    uint32_t searched;
    /** The last of them, after which the search goes on. [optional out_point] */
    outrigger_optional_out_point_t last;
} outrigger_coin_search_t;

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

/** What the node estimates that a transaction has to pay. */
typedef struct outrigger_fee_estimate_t {
    /**
     * The feerate, in satoshi per 1000 virtual bytes, and no less than the mempool accepts; none where the node knows
     * too little. [optional u64]
     */
    outrigger_optional_u64_t feerate;
    /**
     * The number of blocks that it is for: fewer than were asked for where the node knows too little of so many. [u32]
     */
    uint32_t blocks;
} outrigger_fee_estimate_t;

/** What became of one of several transactions that were offered together. */
typedef struct outrigger_package_member_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Accepted (or, when tried: it would be). */
        struct {
            /** Its virtual size, in virtual bytes. [u64] */
            uint64_t virtual_size;
            /** Its fee, in satoshi. [u64] */
            uint64_t fee;
            /**
             * The feerate that it was judged by, with what prioritisetransaction added, in satoshi per 1000 virtual
             * bytes. [u64]
             */
            uint64_t feerate;
            /** The transactions whose feerate together that is, by their ids with witness. [list of hash] */
            outrigger_list_t included;
        } accepted;
        /** In the mempool already. */
        struct {
            /** Its virtual size, in virtual bytes. [u64] */
            uint64_t virtual_size;
            /** Its fee, in satoshi. [u64] */
            uint64_t fee;
        } in_mempool;
        /** In the mempool already with another witness. */
        struct {
            /** The id of that one, with witness. [hash] */
            outrigger_hash_t wtxid;
        } other_witness;
        /** Refused. */
        struct {
            /** The reason as bitcoind words it. [text] */
            outrigger_bytes_t reason;
            /** More of it; may be empty. [text] */
            outrigger_bytes_t detail;
        } rejected;
    } as;
} outrigger_package_member_t;

/** What an outrigger_package_member_t can be. */
enum {
    /** Accepted (or, when tried: it would be). */
    OUTRIGGER_PACKAGE_MEMBER_ACCEPTED = 0,
    /** In the mempool already. */
    OUTRIGGER_PACKAGE_MEMBER_IN_MEMPOOL = 1,
    /** In the mempool already with another witness. */
    OUTRIGGER_PACKAGE_MEMBER_OTHER_WITNESS = 2,
    /** Refused. */
    OUTRIGGER_PACKAGE_MEMBER_REJECTED = 3,
    /** Another one, or all together, were refused before. */
    OUTRIGGER_PACKAGE_MEMBER_NOT_JUDGED = 4,
};

/** What became of several transactions that were offered together. */
typedef struct outrigger_package_outcome_t {
    /** Why not all of them are accepted, as bitcoind words it; empty where they are. [text] */
    outrigger_bytes_t reason;
    /** More of it; may be empty. [text] */
    outrigger_bytes_t detail;
    /** Whether a rule of packages is broken, and not one of a transaction. [bool] */
    bool is_policy;
    /** What became of each, in their order. [list of package_member] */
    outrigger_list_t members;
    /** The transactions that were replaced, by their ids. [list of hash] */
    outrigger_list_t replaced;
} outrigger_package_outcome_t;

/** What is taken over from the file of a mempool, beside its transactions. */
typedef struct outrigger_mempool_import_t {
    /** Whether the transactions count as coming now, and not when the file says. [bool] */
    bool use_current_time;
    /** Whether what was added to fees is added here too. [bool] */
    bool fee_deltas;
    /** Whether transactions that no peer was known to have count as such here. [bool] */
    bool unbroadcast;
} outrigger_mempool_import_t;

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
    /**
     * Balances and lists tell apart coins of scripts that were spent from before. sendtoaddress leaves these coins and
     * spends the coins of a script together, unless it is told otherwise; other payments choose as without it. [bool]
     */
    bool avoid_reuse;
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

/** Perhaps a value. [optional synced] */
typedef struct outrigger_optional_synced_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_synced_t value;
} outrigger_optional_synced_t;

/** The wallet of the call. */
typedef struct outrigger_wallet_info_t {
    /** Its name. [text] */
    outrigger_bytes_t name;
    /** Where it stands. Depths are counted from here, never from the chain's tip. [synced] */
    outrigger_synced_t synced;
    /** Whether it may hold private keys. [bool] */
    bool private_keys_enabled;
    /** Whether it was made without keys of its own, and has got none since. Imports leave it as it is. [bool] */
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
    /** Addresses of all types that lie ahead for receiving, and imported keys that wait to give one. [u64] */
    uint64_t keypool_external;
    /** The same for change. [u64] */
    uint64_t keypool_internal;
    /** The time of its oldest key, script or transaction, in seconds. [u64] */
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
     * What the wallet's owner should know, for people: that a former key is still to be overwritten in its file. Since
     * minor 1. [list of text]
     */
    outrigger_list_t warnings;
    /**
     * Where the node stands while it lacks blocks that the wallet has followed; none otherwise. Since minor 1.
     * [optional synced]
     */
    outrigger_optional_synced_t node_behind;
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
    /**
     * The public keys by their hashes, 33 or 65 bytes each; those that tapscripts hash, x only (32 bytes). [list of
     * bytes]
     */
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
    uint64_t order_position;
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

/** What is known of a transaction that is not settled: computed for each answer, never stored. */
typedef struct outrigger_unsettled_state_t {
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
    /**
     * Whether it can be replaced, as far as the wallet knows by itself: unknown of one in the mempool that does not
     * signal it, of which outrigger_wallet_replaceable() asks the node. [replaceable]
     */
    outrigger_replaceable_t replaceable;
} outrigger_unsettled_state_t;

/** Perhaps a value. [optional unsettled_state] */
typedef struct outrigger_optional_unsettled_state_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_unsettled_state_t value;
} outrigger_optional_unsettled_state_t;

/** A transaction of the wallet as it is told. */
typedef struct outrigger_history_row_t {
    /** It, as it is stored. [framed wallet_transaction] */
    outrigger_wallet_transaction_t transaction;
    /**
     * What the moment says of it. None for one in the best chain that is not contested: it is trusted, cannot be
     * replaced, and has no conflicts. [optional unsettled_state]
     */
    outrigger_optional_unsettled_state_t unsettled;
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
        /** Those whose conflict confirmed at a height or above, by that height, then order position. */
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
    /** Those in the mempool, inactive or abandoned, by order position. */
    OUTRIGGER_HISTORY_RANGE_UNCONFIRMED = 1,
    /** Those whose conflict confirmed at a height or above, by that height, then order position. */
    OUTRIGGER_HISTORY_RANGE_CONFLICTED = 2,
    /** All, by order position. */
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

/** Perhaps a value. [optional admission] */
typedef struct outrigger_optional_admission_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_admission_t value;
} outrigger_optional_admission_t;

/** Several values. [(bytes, bool)] */
typedef struct outrigger_tuple_of_bytes_and_bool_t {
    /** [bytes] */
    outrigger_bytes_t first;
    /** [bool] */
    bool second;
} outrigger_tuple_of_bytes_and_bool_t;

/** An extended key (BIP 32) of the wallet's descriptors. */
typedef struct outrigger_hd_key_t {
    /** It, without the private key. [text] */
    outrigger_bytes_t xpub;
    /** Whether the private key is held. [bool] */
    bool has_private;
    /** It with the private key, where that was asked for and is held. [optional secret] */
    outrigger_optional_bytes_t xprv;
    /**
     * The descriptors that are written with it, as listdescriptors shows them, and whether new addresses come from
     * each. [list of (text, bool)]
     */
    outrigger_list_t descriptors;
} outrigger_hd_key_t;

/** 20 bytes. [array 20] */
typedef struct outrigger_array20_t {
    /** They. */
    uint8_t bytes[20];
} outrigger_array20_t;

/** Perhaps a value. [optional address_type] */
typedef struct outrigger_optional_address_type_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_address_type_t value;
} outrigger_optional_address_type_t;

/** What holds for the payments of a wallet. Each is an option of bitcoind, named in its description. */
typedef struct outrigger_spend_settings_t {
    /**
     * The feerate of payments that name none while there is no estimate; none: such payments are refused
     * (`-fallbackfee`). [optional u64]
     */
    outrigger_optional_u64_t fallback_feerate;
    /** The least feerate (`-mintxfee`). [u64] */
    uint64_t min_feerate;
    /** The feerate at which change must be worth spending (`-discardfee`). [u64] */
    uint64_t discard_feerate;
    /** The feerate up to which it is better to spend more coins than needed (`-consolidatefeerate`). [u64] */
    uint64_t consolidate_feerate;
    /** The feerate of payments that name neither feerate nor target (settxfee). [optional u64] */
    outrigger_optional_u64_t pay_feerate;
    /** The greatest fee of a transaction (`-maxtxfee`). [u64] */
    uint64_t max_fee;
    /**
     * The greatest fee that the coins of a script may cost more to be spent together; none: they are not tried together
     * (`-maxapsfee`). [optional u64]
     */
    outrigger_optional_u64_t max_grouping_fee;
    /** The blocks within which a payment is to be confirmed that names no target (`-txconfirmtarget`). [u32] */
    uint32_t target;
    /** Whether payments can be replaced that do not say (`-walletrbf`). [bool] */
    bool replaceable;
    /** Whether change is spent before it is confirmed (`-spendzeroconfchange`). [bool] */
    bool spend_unconfirmed_change;
    /** Whether the coins of a script are spent together (`-avoidpartialspends`). [bool] */
    bool avoid_partial_spends;
    /**
     * Whether payments are refused that make longer chains than the mempool takes (`-walletrejectlongchains`). [bool]
     */
    bool reject_long_chains;
    /** The type of addresses that are asked for without one (`-addresstype`). [address_type] */
    outrigger_address_type_t address_type;
    /** The type of change; none: one that suits the recipients (`-changetype`). [optional address_type] */
    outrigger_optional_address_type_t change_type;
    /**
     * Whether bumpfee also replaces transactions that do not signal it (BIP 125): as the node's release does, not an
     * option. Since minor 1. [bool]
     */
    bool replaces_any;
} outrigger_spend_settings_t;

/** What a script of the wallet received. */
typedef struct outrigger_received_t {
    /** The script. [bytes] */
    outrigger_bytes_t script;
    /** Whose it is. [ownership] */
    outrigger_ownership_t ownership;
    /** The label of its address; none where it has no entry in the address book. [optional text] */
    outrigger_optional_bytes_t label;
    /** The sum of the outputs. [u64] */
    uint64_t amount;
    /** The least depth of their transactions. [i64] */
    int64_t depth;
    /** The transaction of each output, by order position. [list of hash] */
    outrigger_list_t txids;
} outrigger_received_t;

/** Whose payments are summed up. */
typedef struct outrigger_received_by_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Those of these scripts that are the wallet's. */
        struct {
            /** They. [list of bytes] */
            const outrigger_bytes_t *scripts;
            /** How many there are. */
            size_t scripts_count;
        } scripts;
    } as;
} outrigger_received_by_t;

/** What an outrigger_received_by_t can be. */
enum {
    /** All scripts of the wallet that have an entry in the address book. */
    OUTRIGGER_RECEIVED_BY_ADDRESS_BOOK = 0,
    /** Those of these scripts that are the wallet's. */
    OUTRIGGER_RECEIVED_BY_SCRIPTS = 1,
};

/**
 * Which payments count. The depth of a transaction is counted from where the wallet stands: it is 1 in that block, 0
 * where it is not confirmed, and negative where a block made it impossible.
 */
typedef struct outrigger_received_query_t {
    /** To which scripts. [received_by] */
    outrigger_received_by_t by;
    /** The least depth of a transaction that counts. [i64] */
    int64_t min_depth;
    /** The least depth of a coinbase that counts. [i64] */
    int64_t min_coinbase_depth;
} outrigger_received_query_t;

/** Sums of the coins of one ownership. */
typedef struct outrigger_coin_totals_t {
    /**
     * Mature confirmed coins, and unconfirmed ones of trusted transactions (`CachedTxIsTrusted` in Bitcoin Core). [u64]
     */
    uint64_t trusted;
    /** Coins of transactions of the mempool that are not trusted. [u64] */
    uint64_t untrusted_pending;
    /** Coinbase outputs that may not be spent yet. [u64] */
    uint64_t immature;
} outrigger_coin_totals_t;

/** Perhaps a value. [optional coin_totals] */
typedef struct outrigger_optional_coin_totals_t {
    /** Whether there is a value. */
    bool present;
    /** It; zero where there is none. */
    outrigger_coin_totals_t value;
} outrigger_optional_coin_totals_t;

/** The sums of a wallet's coins, by ownership. */
typedef struct outrigger_balances_t {
    /** Of spendable coins. [coin_totals] */
    outrigger_coin_totals_t mine;
    /** Of coins that the wallet watches; none where it has no such coin. [optional coin_totals] */
    outrigger_optional_coin_totals_t watch_only;
    /**
     * Spendable coins of scripts that the wallet has spent from, if they were to be summed up apart. No other sum holds
     * them. [u64]
     */
    uint64_t used;
} outrigger_balances_t;

/** Which coins outrigger_wallet_balances() sums up, and how. */
typedef struct outrigger_balances_query_t {
    /**
     * How many confirmations a coin needs to count as trusted. Unconfirmed coins count where this is 0 or less. [i64]
     */
    int64_t min_depth;
    /** Whether coins of scripts that the wallet has spent from are summed up apart. [bool] */
    bool avoid_reuse;
} outrigger_balances_query_t;

/** An address with a label that was asked for. */
typedef struct outrigger_labelled_address_t {
    /** The address's script. [bytes] */
    outrigger_bytes_t script;
    /** Whether its purpose is `send`, as in `sending`. [bool] */
    bool sending;
} outrigger_labelled_address_t;

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
    /**
     * ECDSA with RFC 6979 and low S, of which the public key can be recovered: the recovery id (0 to 3), then the 64
     * bytes of the compact form. Messages are signed so. Since minor 1.
     */
    OUTRIGGER_SCHEME_ECDSA_RECOVERABLE = 3,
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

/** What a method of the node answered. */
typedef struct outrigger_node_reply_t {
    /** Which it is: one of the constants below. */
    uint8_t tag;
    /** More of it: the member that is named as the tag is, where it has one. */
    union {
        /** Its result. */
        struct {
            /** The JSON text, as the node wrote it. [bytes] */
            outrigger_bytes_t json;
        } result;
        /** Its error. */
        struct {
            /** bitcoind's code, as -8. [i32] */
            int32_t code;
            /** bitcoind's message. [text] */
            outrigger_bytes_t message;
        } error;
    } as;
} outrigger_node_reply_t;

/** What an outrigger_node_reply_t can be. */
enum {
    /** Its result. */
    OUTRIGGER_NODE_REPLY_RESULT = 0,
    /** Its error. */
    OUTRIGGER_NODE_REPLY_ERROR = 1,
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
            /**
             * The height of the last block that was to be read; none where there was none. Since minor 1. [optional
             * u32]
             */
            outrigger_optional_u32_t last_height;
            /**
             * Whether payments near the end of what the wallet had derived made it derive more and read the blocks
             * again. Since minor 1. [bool]
             */
            bool widened;
        } rescan_finished;
        /** A wallet was locked or unlocked (`wallet-lock`). */
        struct {
            /** The wallet's name. [text] */
            outrigger_bytes_t wallet;
            /** Whether it is locked now. [bool] */
            bool locked;
        } wallet_lock_changed;
        /**
         * A deep reorganisation (`wallet.reorganisation_notice`) took transactions of a wallet out of the chain, and
         * the wallet has followed it (`reorganisation`). Some of them may be confirmed again in other blocks. Since
         * minor 1.
         */
        struct {
            /** The wallet's name. [text] */
            outrigger_bytes_t wallet;
            /** How many blocks the wallet went back. [u32] */
            uint32_t blocks;
            /** The transactions, in no order; at most `MAX_REORGANISED`. [list of hash] */
            outrigger_list_t transactions;
        } wallet_reorganised;
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
    /**
     * A deep reorganisation (`wallet.reorganisation_notice`) took transactions of a wallet out of the chain, and the
     * wallet has followed it (`reorganisation`). Some of them may be confirmed again in other blocks. Since minor 1.
     */
    OUTRIGGER_EVENT_WALLET_REORGANISED = 6,
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

/** [optional out_point] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_out_point(outrigger_reader_t *reader, outrigger_optional_out_point_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_out_point(reader, &out->value));
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

/** [publication] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_publication(outrigger_reader_t *reader, outrigger_publication_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->topic)
        && outrigger_get_bytes(reader, &out->address)
        && outrigger_get_u32(reader, &out->high_water_mark);
}

/** Goes on behind [publication]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_publication(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 4);
}

/**
 * [list of publication] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_publication(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_publication(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [coins_dump] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_coins_dump(outrigger_reader_t *reader, outrigger_coins_dump_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u64(reader, &out->coins)
        && outrigger_get_array32(reader, &out->hash)
        && outrigger_get_u64(reader, &out->transactions)
        && outrigger_get_bytes(reader, &out->path);
}

/** [found_coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_found_coin(outrigger_reader_t *reader, outrigger_found_coin_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_unspent_output(reader, &out->output)
        && outrigger_get_hash(reader, &out->block);
}

/** Goes on behind [found_coin]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_found_coin(outrigger_reader_t *reader)
{
    return outrigger_skip_unspent_output(reader)
        && outrigger_skip(reader, 32);
}

/**
 * [list of found_coin] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_found_coin(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_found_coin(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [coin_search] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_coin_search(outrigger_reader_t *reader, outrigger_coin_search_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_found_coin(reader, &out->found)
        && outrigger_get_u32(reader, &out->searched)
        && outrigger_get_optional_out_point(reader, &out->last);
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

/** [fee_estimate] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_fee_estimate(outrigger_reader_t *reader, outrigger_fee_estimate_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_optional_u64(reader, &out->feerate)
        && outrigger_get_u32(reader, &out->blocks);
}

/** [package_member] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_package_member(outrigger_reader_t *reader, outrigger_package_member_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_PACKAGE_MEMBER_NOT_JUDGED:
        return true;
    case OUTRIGGER_PACKAGE_MEMBER_ACCEPTED:
        return outrigger_get_u64(reader, &out->as.accepted.virtual_size)
            && outrigger_get_u64(reader, &out->as.accepted.fee)
            && outrigger_get_u64(reader, &out->as.accepted.feerate)
            && outrigger_get_list_of_hash(reader, &out->as.accepted.included);
    case OUTRIGGER_PACKAGE_MEMBER_IN_MEMPOOL:
        return outrigger_get_u64(reader, &out->as.in_mempool.virtual_size)
            && outrigger_get_u64(reader, &out->as.in_mempool.fee);
    case OUTRIGGER_PACKAGE_MEMBER_OTHER_WITNESS:
        return outrigger_get_hash(reader, &out->as.other_witness.wtxid);
    case OUTRIGGER_PACKAGE_MEMBER_REJECTED:
        return outrigger_get_bytes(reader, &out->as.rejected.reason)
            && outrigger_get_bytes(reader, &out->as.rejected.detail);
    default:
        return outrigger_fail(reader);
    }
}

/** Goes on behind [package_member]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_package_member(outrigger_reader_t *reader)
{
    uint8_t tag = 0;
    if (!outrigger_get_u8(reader, &tag)) {
        return false;
    }
    switch (tag) {
    case OUTRIGGER_PACKAGE_MEMBER_NOT_JUDGED:
        return true;
    case OUTRIGGER_PACKAGE_MEMBER_ACCEPTED:
        return outrigger_skip(reader, 8)
            && outrigger_skip(reader, 8)
            && outrigger_skip(reader, 8)
            && outrigger_skip_list_of_hash(reader);
    case OUTRIGGER_PACKAGE_MEMBER_IN_MEMPOOL:
        return outrigger_skip(reader, 8)
            && outrigger_skip(reader, 8);
    case OUTRIGGER_PACKAGE_MEMBER_OTHER_WITNESS:
        return outrigger_skip(reader, 32);
    case OUTRIGGER_PACKAGE_MEMBER_REJECTED:
        return outrigger_skip_bytes(reader)
            && outrigger_skip_bytes(reader);
    default:
        return outrigger_fail(reader);
    }
}

/**
 * [list of package_member] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_package_member(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_package_member(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [package_outcome] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_package_outcome(outrigger_reader_t *reader, outrigger_package_outcome_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->reason)
        && outrigger_get_bytes(reader, &out->detail)
        && outrigger_get_bool(reader, &out->is_policy)
        && outrigger_get_list_of_package_member(reader, &out->members)
        && outrigger_get_list_of_hash(reader, &out->replaced);
}

/** [mempool_import] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_mempool_import(outrigger_writer_t *writer, const outrigger_mempool_import_t *value)
{
    outrigger_put_bool(writer, value->use_current_time);
    outrigger_put_bool(writer, value->fee_deltas);
    outrigger_put_bool(writer, value->unbroadcast);
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

/** [optional synced] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_synced(outrigger_reader_t *reader, outrigger_optional_synced_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_synced(reader, &out->value));
}

/** [wallet_info] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_wallet_info(outrigger_reader_t *reader, outrigger_wallet_info_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->name)
        && outrigger_get_synced(reader, &out->synced)
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
        && ((!reader->failed && reader->left == 0) || outrigger_get_list_of_bytes(reader, &out->warnings))
        && ((!reader->failed && reader->left == 0) || outrigger_get_optional_synced(reader, &out->node_behind));
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

/** [(bytes, bytes)] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_tuple_of_bytes_and_bytes(
    outrigger_writer_t *writer, const outrigger_tuple_of_bytes_and_bytes_t *value)
{
    outrigger_put_bytes(writer, value->first);
    outrigger_put_bytes(writer, value->second);
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

/** [list of (bytes, bytes)] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_tuple_of_bytes_and_bytes(
    outrigger_writer_t *writer, const outrigger_tuple_of_bytes_and_bytes_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_tuple_of_bytes_and_bytes(writer, &value[at]);
    }
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
        && outrigger_get_u64(reader, &out->order_position)
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

/** [unsettled_state] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_unsettled_state(outrigger_reader_t *reader, outrigger_unsettled_state_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_list_of_hash(reader, &out->conflicts)
        && outrigger_get_list_of_hash(reader, &out->mempool_conflicts)
        && outrigger_get_bool(reader, &out->trusted)
        && outrigger_get_replaceable(reader, &out->replaceable);
}

/** Goes on behind [unsettled_state]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_unsettled_state(outrigger_reader_t *reader)
{
    return outrigger_skip_list_of_hash(reader)
        && outrigger_skip_list_of_hash(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip(reader, 1);
}

/**
 * [optional unsettled_state] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_optional_unsettled_state(
    outrigger_reader_t *reader, outrigger_optional_unsettled_state_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_unsettled_state(reader, &out->value));
}

/**
 * Goes on behind [optional unsettled_state]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline bool outrigger_skip_optional_unsettled_state(outrigger_reader_t *reader)
{
    bool present = false;
    return outrigger_get_bool(reader, &present) && (!present || outrigger_skip_unsettled_state(reader));
}

/** [history_row] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_history_row(outrigger_reader_t *reader, outrigger_history_row_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_framed_wallet_transaction(reader, &out->transaction)
        && outrigger_get_optional_unsettled_state(reader, &out->unsettled);
}

/** Goes on behind [history_row]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_history_row(outrigger_reader_t *reader)
{
    return outrigger_skip_framed_wallet_transaction(reader)
        && outrigger_skip_optional_unsettled_state(reader);
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

/**
 * [optional admission] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_optional_admission(outrigger_reader_t *reader, outrigger_optional_admission_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_admission(reader, &out->value));
}

/**
 * [list of list of hash] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_list_of_hash(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_list_of_hash(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [(bytes, bool)] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_tuple_of_bytes_and_bool(
    outrigger_reader_t *reader, outrigger_tuple_of_bytes_and_bool_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->first)
        && outrigger_get_bool(reader, &out->second);
}

/** Goes on behind [(bytes, bool)]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_tuple_of_bytes_and_bool(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 1);
}

/**
 * [list of (bytes, bool)] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_tuple_of_bytes_and_bool(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_tuple_of_bytes_and_bool(reader);
    }
    return outrigger_end_list(reader, out);
}

/**
 * Goes on behind [list of (bytes, bool)]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept.
 */
static inline bool outrigger_skip_list_of_tuple_of_bytes_and_bool(outrigger_reader_t *reader)
{
    outrigger_list_t skipped;
    return outrigger_get_list_of_tuple_of_bytes_and_bool(reader, &skipped);
}

/** [hd_key] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_hd_key(outrigger_reader_t *reader, outrigger_hd_key_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->xpub)
        && outrigger_get_bool(reader, &out->has_private)
        && outrigger_get_optional_bytes(reader, &out->xprv)
        && outrigger_get_list_of_tuple_of_bytes_and_bool(reader, &out->descriptors);
}

/** Goes on behind [hd_key]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_hd_key(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip_optional_bytes(reader)
        && outrigger_skip_list_of_tuple_of_bytes_and_bool(reader);
}

/** [list of hd_key] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_hd_key(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_hd_key(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [array 20] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_array20(outrigger_writer_t *writer, const outrigger_array20_t *value)
{
    outrigger_append(writer, value->bytes, sizeof value->bytes);
}

/** [optional address_type] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_address_type(
    outrigger_reader_t *reader, outrigger_optional_address_type_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_address_type(reader, &out->value));
}

/** [spend_settings] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_spend_settings(outrigger_reader_t *reader, outrigger_spend_settings_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_optional_u64(reader, &out->fallback_feerate)
        && outrigger_get_u64(reader, &out->min_feerate)
        && outrigger_get_u64(reader, &out->discard_feerate)
        && outrigger_get_u64(reader, &out->consolidate_feerate)
        && outrigger_get_optional_u64(reader, &out->pay_feerate)
        && outrigger_get_u64(reader, &out->max_fee)
        && outrigger_get_optional_u64(reader, &out->max_grouping_fee)
        && outrigger_get_u32(reader, &out->target)
        && outrigger_get_bool(reader, &out->replaceable)
        && outrigger_get_bool(reader, &out->spend_unconfirmed_change)
        && outrigger_get_bool(reader, &out->avoid_partial_spends)
        && outrigger_get_bool(reader, &out->reject_long_chains)
        && outrigger_get_address_type(reader, &out->address_type)
        && outrigger_get_optional_address_type(reader, &out->change_type)
        && ((!reader->failed && reader->left == 0) || outrigger_get_bool(reader, &out->replaces_any));
}

/** [received] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_received(outrigger_reader_t *reader, outrigger_received_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->script)
        && outrigger_get_ownership(reader, &out->ownership)
        && outrigger_get_optional_bytes(reader, &out->label)
        && outrigger_get_u64(reader, &out->amount)
        && outrigger_get_i64(reader, &out->depth)
        && outrigger_get_list_of_hash(reader, &out->txids);
}

/** Goes on behind [received]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_received(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 1)
        && outrigger_skip_optional_bytes(reader)
        && outrigger_skip(reader, 8)
        && outrigger_skip(reader, 8)
        && outrigger_skip_list_of_hash(reader);
}

/** [list of received] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_list_of_received(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_received(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [received_by] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_received_by(outrigger_writer_t *writer, const outrigger_received_by_t *value)
{
    outrigger_put_u8(writer, value->tag);
    switch (value->tag) {
    case OUTRIGGER_RECEIVED_BY_ADDRESS_BOOK:
        break;
    case OUTRIGGER_RECEIVED_BY_SCRIPTS:
        outrigger_put_list_of_bytes(writer, value->as.scripts.scripts, value->as.scripts.scripts_count);
        break;
    default:
        writer->failed = true;
        break;
    }
}

/** [received_query] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_received_query(outrigger_writer_t *writer, const outrigger_received_query_t *value)
{
    outrigger_put_received_by(writer, &value->by);
    outrigger_put_i64(writer, value->min_depth);
    outrigger_put_i64(writer, value->min_coinbase_depth);
}

/** [list of descriptor_import] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_list_of_descriptor_import(
    outrigger_writer_t *writer, const outrigger_descriptor_import_t *value, size_t count)
{
    size_t at = 0;
    outrigger_put_count(writer, count);
    for (at = 0; at < count; at++) {
        outrigger_put_descriptor_import(writer, &value[at]);
    }
}

/** [coin_totals] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_coin_totals(outrigger_reader_t *reader, outrigger_coin_totals_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_u64(reader, &out->trusted)
        && outrigger_get_u64(reader, &out->untrusted_pending)
        && outrigger_get_u64(reader, &out->immature);
}

/** [optional coin_totals] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_optional_coin_totals(
    outrigger_reader_t *reader, outrigger_optional_coin_totals_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bool(reader, &out->present)
        && (!out->present || outrigger_get_coin_totals(reader, &out->value));
}

/** [balances] Threads: any. Ownership: nothing changes hands. Lifetime: `*out` is a copy. */
static inline bool outrigger_get_balances(outrigger_reader_t *reader, outrigger_balances_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_coin_totals(reader, &out->mine)
        && outrigger_get_optional_coin_totals(reader, &out->watch_only)
        && outrigger_get_u64(reader, &out->used);
}

/** [balances_query] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_balances_query(outrigger_writer_t *writer, const outrigger_balances_query_t *value)
{
    outrigger_put_i64(writer, value->min_depth);
    outrigger_put_bool(writer, value->avoid_reuse);
}

/**
 * [list of replaceable] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes.
 */
static inline bool outrigger_get_list_of_replaceable(outrigger_reader_t *reader, outrigger_list_t *out)
{
    return outrigger_get_list_of_fixed(reader, 1, out);
}

/** [labelled_address] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_labelled_address(outrigger_reader_t *reader, outrigger_labelled_address_t *out)
{
    memset(out, 0, sizeof *out);
    return outrigger_get_bytes(reader, &out->script)
        && outrigger_get_bool(reader, &out->sending);
}

/** Goes on behind [labelled_address]. Threads: any. Ownership: nothing changes hands. Lifetime: nothing is kept. */
static inline bool outrigger_skip_labelled_address(outrigger_reader_t *reader)
{
    return outrigger_skip_bytes(reader)
        && outrigger_skip(reader, 1);
}

/**
 * [list of labelled_address] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's
 * bytes.
 */
static inline bool outrigger_get_list_of_labelled_address(outrigger_reader_t *reader, outrigger_list_t *out)
{
    uint32_t at = 0;
    outrigger_begin_list(reader, out);
    for (at = 0; at < out->count && !reader->failed; at++) {
        outrigger_skip_labelled_address(reader);
    }
    return outrigger_end_list(reader, out);
}

/** [scheme] Threads: any. Ownership: what is written stays the caller's. Lifetime: it is copied. */
static inline void outrigger_put_scheme(outrigger_writer_t *writer, const outrigger_scheme_t *value)
{
    outrigger_put_u8(writer, value->tag);
    switch (value->tag) {
    case OUTRIGGER_SCHEME_ECDSA:
    case OUTRIGGER_SCHEME_SCHNORR:
    case OUTRIGGER_SCHEME_ECDSA_RECOVERABLE:
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

/** [node_reply] Threads: any. Ownership: stays where it was. Lifetime: of `*out`, that of the reader's bytes. */
static inline bool outrigger_get_node_reply(outrigger_reader_t *reader, outrigger_node_reply_t *out)
{
    memset(out, 0, sizeof *out);
    if (!outrigger_get_u8(reader, &out->tag)) {
        return false;
    }
    switch (out->tag) {
    case OUTRIGGER_NODE_REPLY_RESULT:
        return outrigger_get_bytes(reader, &out->as.result.json);
    case OUTRIGGER_NODE_REPLY_ERROR:
        return outrigger_get_i32(reader, &out->as.error.code)
            && outrigger_get_bytes(reader, &out->as.error.message);
    default:
        return outrigger_fail(reader);
    }
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
            && outrigger_get_rescan_outcome(reader, &out->as.rescan_finished.outcome)
            && ((!reader->failed && reader->left == 0) || outrigger_get_optional_u32(reader, &out->as.rescan_finished.last_height))
            && ((!reader->failed && reader->left == 0) || outrigger_get_bool(reader, &out->as.rescan_finished.widened));
    case OUTRIGGER_EVENT_WALLET_LOCK_CHANGED:
        return outrigger_get_bytes(reader, &out->as.wallet_lock_changed.wallet)
            && outrigger_get_bool(reader, &out->as.wallet_lock_changed.locked);
    case OUTRIGGER_EVENT_WALLET_REORGANISED:
        return outrigger_get_bytes(reader, &out->as.wallet_reorganised.wallet)
            && outrigger_get_u32(reader, &out->as.wallet_reorganised.blocks)
            && outrigger_get_list_of_hash(reader, &out->as.wallet_reorganised.transactions);
    default:
        return outrigger_fail(reader);
    }
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service chain/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * The best block.
 *
 * Request: nothing. Response: [tip].
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
 * Request: nothing. Response: [chain_info].
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
 * Request: block [block_ref]. Response: [optional block_info].
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
 * A block's serialisation, on any branch; none when it is unknown, only its header is known, or the node has dropped it
 * (`-prune`).
 *
 * Request: hash [hash]. Response: [optional bytes].
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
 * What each transaction of a connected block spent, the coinbase's entry being empty; none where the node has dropped
 * it, or is a bitcoind before Bitcoin Core 23, which does not tell it.
 *
 * Request: hash [hash]. Response: [optional list of spent_outputs].
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
 * The confirmed transaction of an id on the best chain. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind without
 * `txindex=1`.
 *
 * Request: txid [hash]. Response: [optional confirmed_transaction].
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
 * Request: outpoints [list of out_point]. Response: [list of optional coin].
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
 * Request: hash [hash]. Response: [optional block_info].
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
 * Request: nothing. Response: [list of chain_tip].
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
 * What a block on the tip must and may be. Fails with OUTRIGGER_STATUS_NODE_UNAVAILABLE on a bitcoind that makes no
 * templates now: it has no peers, or is still fetching the chain.
 *
 * Request: nothing. Response: [next_block].
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
 * Request: nothing. Response: [u64].
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
 * Request: raw [bytes]. Response: [verdict].
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
 * Request: raw [bytes]. Response: [verdict].
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
 * Request: raw [bytes]. Response: [verdict].
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
 * Request: hash [hash]. Response: [nothing].
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
 * Request: hash [hash]. Response: [nothing].
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
 * Request: hash [hash]. Response: [nothing].
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
 * Request: seconds [u64]. Response: [nothing].
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
 * any. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
 *
 * Request: outpoint [optional out_point], limit [u32]. Response: [list of unspent_output].
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
 * Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind before Bitcoin Core 23. What it does not tell of a deployment
 * is 0: the bit, the period and the threshold where signals do not count. Since minor 1.
 *
 * Request: hash [hash]. Response: [optional list of deployment].
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
 * Request: nothing. Response: [text].
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

/**
 * What is published over ZMQ, in the order in which it is sent; nothing in front of a bitcoind. Since minor 1.
 *
 * Request: nothing. Response: [list of publication].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_publications(
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
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_PUBLICATIONS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_publication(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Writes the unspent outputs as of a block of the best chain to a new file, which bitcoind reads. A path that is
 * relative begins in the folder of the network's data. OUTRIGGER_STATUS_REFUSED with what to tell the client where
 * there is such a file, or none can be made. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
 *
 * Request: file [text], block [hash]. Response: [coins_dump].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_dump_coins(
    const outrigger_service_t *chain, uint64_t scope, outrigger_bytes_t file, const outrigger_hash_t *block,
    outrigger_owned_bytes_t *response, outrigger_coins_dump_t *out)
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
    outrigger_put_bytes(&request, file);
    outrigger_put_hash(&request, block);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_DUMP_COINS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_coins_dump(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Looks for scripts among the unspent outputs that follow this one, or among the first ones, in the order of
 * `coins_after`. At most so many are looked at, and fewer where what is found would make a large answer, but one at
 * least where there is any. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
 *
 * Request: scripts [list of bytes], outpoint [optional out_point], limit [u32]. Response: [coin_search].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_chain_find_coins(
    const outrigger_service_t *chain, uint64_t scope, const outrigger_bytes_t *scripts, size_t scripts_count,
    const outrigger_optional_out_point_t *outpoint, uint32_t limit, outrigger_owned_bytes_t *response,
    outrigger_coin_search_t *out)
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
    outrigger_put_optional_out_point(&request, outpoint);
    outrigger_put_u32(&request, limit);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_FIND_COINS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_coin_search(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Waits until the loaded wallets have taken over all that the node had told them at the call (bitcoind's
 * syncwithvalidationinterfacequeue). One that cannot follow the chain is not waited for. Since minor 1.
 *
 * Request: nothing. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_chain_wait_for_wallets(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_WAIT_FOR_WALLETS, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * The height of the lowest block from which on the node has all, where it began with a snapshot of the unspent outputs
 * (assumeutxo), and fetches and validates the blocks before in the background; none of any other node. Blocks that are
 * lacking then come by themselves. Since minor 1.
 *
 * Request: nothing. Response: [optional u32].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_chain_background_validation(
    const outrigger_service_t *chain, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_optional_u32_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(chain, OUTRIGGER_FN_CHAIN_BACKGROUND_VALIDATION, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_u32(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service mempool/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * The mempool as a whole.
 *
 * Request: nothing. Response: [mempool_info].
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
 * Request: nothing. Response: [list of hash].
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
 * Request: txids [list of hash]. Response: [list of optional mempool_entry].
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
 * Request: txids [list of hash]. Response: [list of optional raw_transaction].
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
 * Request: outpoints [list of out_point]. Response: [list of optional hash].
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
 * Request: raw [bytes], max_feerate [u64]. Response: [admission].
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
 * Request: raw [bytes], max_feerate [u64]. Response: [admission].
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
 * knows, so that what has not changed is not handed over again. In front of a bitcoind it is the node's own, which it
 * makes anew for another tip and else every five seconds at most; it fails as outrigger_chain_next_block() does.
 *
 * Request: known [optional u64]. Response: [optional candidate].
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
 * Request: txid [hash], fee_delta [i64]. Response: [nothing].
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
 * All that was added and stands, by txid. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind before Bitcoin Core 26.
 *
 * Request: nothing. Response: [list of prioritised].
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
 * Request: txids [list of hash]. Response: [list of bool].
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
 * The feerate at which a transaction is expected to be confirmed within so many blocks. A conservative one also looks
 * further back, so that it falls later when fees fall; the other is economical (`estimate_mode`). Since minor 1.
 *
 * Request: blocks [u32], conservative [bool]. Response: [fee_estimate].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_mempool_fee_estimate(
    const outrigger_service_t *mempool, uint64_t scope, uint32_t blocks, bool conservative,
    outrigger_owned_bytes_t *response, outrigger_fee_estimate_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    outrigger_put_u32(&request, blocks);
    outrigger_put_bool(&request, conservative);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_FEE_ESTIMATE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_fee_estimate(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Offers transactions that build on one another, parents before their one child: first each by itself, then those
 * together that pay too little by themselves. `max_feerate` is that of `submit`, and bounds each. Fails with
 * OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
 *
 * Request: transactions [list of bytes], max_feerate [u64]. Response: [package_outcome].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_submit_package(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_bytes_t *transactions,
    size_t transactions_count, uint64_t max_feerate, outrigger_owned_bytes_t *response,
    outrigger_package_outcome_t *out)
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
    outrigger_put_list_of_bytes(&request, transactions, transactions_count);
    outrigger_put_u64(&request, max_feerate);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_SUBMIT_PACKAGE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_package_outcome(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * What the mempool would say of these transactions, of which each pays for itself and none replaces others, unless it
 * is the only one; keeping nothing. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
 *
 * Request: transactions [list of bytes]. Response: [package_outcome].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_try_package(
    const outrigger_service_t *mempool, uint64_t scope, const outrigger_bytes_t *transactions,
    size_t transactions_count, outrigger_owned_bytes_t *response, outrigger_package_outcome_t *out)
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
    outrigger_put_list_of_bytes(&request, transactions, transactions_count);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_TRY_PACKAGE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_package_outcome(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Writes the mempool to a file that bitcoind reads, and gives its path. OUTRIGGER_STATUS_REFUSED when it cannot be
 * written. Fails with OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
 *
 * Request: nothing. Response: [text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_mempool_save(
    const outrigger_service_t *mempool, uint64_t scope, outrigger_owned_bytes_t *response, outrigger_bytes_t *out)
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
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_SAVE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Offers the transactions of such a file to the mempool, as if they came one after the other. OUTRIGGER_STATUS_REFUSED
 * when the file may not or cannot be read; what stands before a damage is taken in. Fails with
 * OUTRIGGER_STATUS_UNSUPPORTED on a bitcoind. Since minor 1.
 *
 * Request: file [text], options [mempool_import]. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_mempool_import(
    const outrigger_service_t *mempool, uint64_t scope, outrigger_bytes_t file,
    const outrigger_mempool_import_t *options, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bytes(&request, file);
    outrigger_put_mempool_import(&request, options);
    status = outrigger_ask_written(mempool, OUTRIGGER_FN_MEMPOOL_IMPORT, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service wallet/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * Makes a wallet and loads it, as the last of the loaded ones. Gives its warnings. It begins at the tip: what is in
 * older blocks takes a rescan. Unless it is blank or keyless it gets a random master key and, for receiving and for
 * change, an active descriptor of each address type (BIP 44, 49, 84, 86), born at the node's time.
 *
 * OUTRIGGER_STATUS_WALLET_EXISTS when there is one of the name, loaded or not; OUTRIGGER_STATUS_REFUSED for a name that
 * is no plain path, or a passphrase without private keys. Then nothing is left behind.
 *
 * Request: options [create_options]. Response: [list of text].
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
 * Request: name [text], load_on_startup [optional bool]. Response: [list of text].
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
 * Request: name [text], load_on_startup [optional bool]. Response: [list of text].
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
 * Request: nothing. Response: [list of text].
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
 * Request: nothing. Response: [list of text].
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
 * Request: nothing. Response: [wallet_info].
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
 * Request: scripts [list of bytes]. Response: [list of optional script_info].
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
 * Request: txids [list of hash]. Response: [history_batch].
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
 * Request: txids [list of hash]. Response: [list of optional bytes].
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
 * Request: query [history_query]. Response: [history_batch].
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
 * Request: numbers [list of u32]. Response: [list of optional text].
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
 * Request: after [optional bytes], limit [u32]. Response: [coin_batch].
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
 * Request: private [bool]. Response: [list of descriptor_info].
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
 * Request: kind [address_type], internal [bool], label [optional text]. Response: [bytes].
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
 * Request: script [bytes], label [text]. Response: [nothing].
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
 * Request: requests [list of import]. Response: [list of import_outcome].
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
 * Request: nothing. Response: [u64].
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
 * Request: rescan [u64]. Response: [nothing].
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
 * Request: rescan [u64], from_time [u64]. Response: [nothing].
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
 * Request: nothing. Response: [bool].
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
 * Request: txid [hash], key [text], value [text]. Response: [nothing].
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
 * Request: txid [hash]. Response: [nothing].
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
 * Request: passphrase [secret]. Response: [nothing].
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
 * Request: passphrase [secret], seconds [u64]. Response: [nothing].
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
 * Request: nothing. Response: [nothing].
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
 * Request: old [secret], new [secret]. Response: [nothing].
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
 * Request: after [optional bytes], limit [u32]. Response: [label_batch].
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
 * Request: size [optional u32]. Response: [nothing].
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
 * Request: avoid [bool]. Response: [nothing].
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
 * Request: file [text]. Response: [nothing].
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
 * Request: name [text], file [text], load_on_startup [optional bool]. Response: [list of text].
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
 * Request: script [bytes]. Response: [bool].
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

/**
 * Sends a signed transaction of the wallet. It is stored with these texts (see `set_metadata`) before a byte of it
 * leaves the host, so that nothing else spends what it does: inactive, or in the mempool where the node is in the
 * host's process. Then it is offered to the mempool. Gives the answer; none where the node did not say whether it took
 * it, or is away, and where nothing is broadcast. It stays in any case, also where the mempool refuses it: then it is
 * inactive, what it spends is taken until it is given up (`abandon`), and it is offered again as all that is inactive.
 * A kill of the host leaves nothing of it before it is stored, and such a transaction after. One that the wallet has
 * already is only offered. Since minor 1.
 *
 * OUTRIGGER_STATUS_REFUSED where it neither pays to the wallet nor spends from it, or spends what another transaction
 * of the wallet does that is confirmed, in the mempool or inactive; and for a text of more than 16,384 bytes. With an
 * error, nothing of it is stored or sent.
 *
 * Request: raw [bytes], metadata [list of (text, text)]. Response: [optional admission].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_send(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t raw,
    const outrigger_tuple_of_bytes_and_bytes_t *metadata, size_t metadata_count, outrigger_owned_bytes_t *response,
    outrigger_optional_admission_t *out)
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
    outrigger_put_list_of_tuple_of_bytes_and_bytes(&request, metadata, metadata_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SEND, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_admission(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The transactions of the wallet that spend each of these outpoints, in their order, whatever became of them. Since
 * minor 1.
 *
 * Request: outpoints [list of out_point]. Response: [list of list of hash].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_spenders(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_out_point_t *outpoints, size_t outpoints_count,
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
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SPENDERS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_list_of_hash(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Locks outputs, the wallet's or not: who makes payments does not choose them. One that a transaction of the wallet
 * spends (as for `coins`) is passed over. A lock ends when the wallet is unloaded, unless it is persistent; one that is
 * persistent stays so. A new transaction of the wallet that spends the output ends it, and with a payment that `send`
 * takes back it is there again. Since minor 1.
 *
 * Request: coins [list of out_point], persistent [bool]. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_lock_coins(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_out_point_t *coins, size_t coins_count,
    bool persistent, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_list_of_out_point(&request, coins, coins_count);
    outrigger_put_bool(&request, persistent);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LOCK_COINS, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Unlocks these outputs, and forgets persistent locks. Nothing for one that is not locked. Since minor 1.
 *
 * Request: coins [list of out_point]. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_unlock_coins(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_out_point_t *coins, size_t coins_count,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_list_of_out_point(&request, coins, coins_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_UNLOCK_COINS, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * The locked outputs: by the txid's internal bytes, then the output's number. Since minor 1.
 *
 * Request: nothing. Response: [list of out_point].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_locked_coins(
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
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LOCKED_COINS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_out_point(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Starts the reserved rescan as `rescan_start` does, at the height `first` and up to the height `last`; without one up
 * to where the wallet stands, then the whole mempool. OUTRIGGER_STATUS_NOT_FOUND when this is not reserved. Since minor
 * 1.
 *
 * Request: rescan [u64], first [u32], last [optional u32]. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_rescan_heights(
    const outrigger_service_t *wallet, uint64_t scope, uint64_t rescan, uint32_t first,
    const outrigger_optional_u32_t *last, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_u64(&request, rescan);
    outrigger_put_u32(&request, first);
    outrigger_put_optional_u32(&request, last);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RESCAN_HEIGHTS, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * The extended keys that the descriptors are written with, by public key and chain code; with private keys where these
 * are asked for and held. Of a locked wallet's descriptor with several keys, all count as held where some are.
 * OUTRIGGER_STATUS_WALLET_LOCKED when private ones are asked of a locked wallet; OUTRIGGER_STATUS_NOT_GRANTED without
 * the grant for its keys. Since minor 1.
 *
 * Request: private [bool]. Response: [list of hd_key].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_hd_keys(
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
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_HD_KEYS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_hd_key(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The private key of a public key of this HASH160, as WIF: of a descriptor that is written with it, or derives a P2PKH,
 * P2WPKH or P2SH-P2WPKH script of it, or imported. None where the wallet does not hold it.
 * OUTRIGGER_STATUS_WALLET_LOCKED; OUTRIGGER_STATUS_NOT_GRANTED without the grant for its keys. Since minor 1.
 *
 * Request: public_key_hash [array 20]. Response: [optional secret].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_private_key(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_array20_t *public_key_hash,
    outrigger_owned_bytes_t *response, outrigger_optional_bytes_t *out)
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
    outrigger_put_array20(&request, public_key_hash);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_PRIVATE_KEY, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Takes over a transaction that pays to the wallet, at its position in a block of the best chain, as if the wallet had
 * met it there. OUTRIGGER_STATUS_NOT_FOUND when the block is none that the wallet has followed;
 * OUTRIGGER_STATUS_REFUSED when no output is the wallet's, or the bytes are no transaction. Since minor 1.
 *
 * Request: raw [bytes], block [hash], index [u32]. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_add_confirmed(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t raw, const outrigger_hash_t *block,
    uint32_t index, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_bytes(&request, raw);
    outrigger_put_hash(&request, block);
    outrigger_put_u32(&request, index);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_ADD_CONFIRMED, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Removes a transaction, as if it had never been met; it is met again where a block or the mempool has it.
 * OUTRIGGER_STATUS_NOT_FOUND for one that the wallet does not have. Since minor 1.
 *
 * Request: txid [hash]. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_remove_transaction(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_hash_t *txid, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_hash(&request, txid);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_REMOVE_TRANSACTION, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * What holds for payments of the wallet: what the operator has set for all, and what `set_pay_feerate` has. Since minor
 * 1.
 *
 * Request: nothing. Response: [spend_settings].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_wallet_spend_settings(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response,
    outrigger_spend_settings_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SPEND_SETTINGS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_spend_settings(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Sets the feerate of payments that name none, until the wallet is unloaded; none: it is estimated again. Since minor
 * 1.
 *
 * Request: feerate [optional u64]. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_set_pay_feerate(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_optional_u64_t *feerate,
    outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    outrigger_put_optional_u64(&request, feerate);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SET_PAY_FEERATE, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * Sends a transaction as `send` does that takes the place of one of the wallet which is not confirmed: that this spends
 * the same is no reason to refuse it. Each of the two gets the other's id as a text (`replaces_txid`,
 * `replaced_by_txid`), also where the mempool refuses it. OUTRIGGER_STATUS_NOT_FOUND where the wallet does not have the
 * one to replace. Since minor 1.
 *
 * Request: replaced [hash], raw [bytes], metadata [list of (text, text)]. Response: [optional admission].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_replace(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_hash_t *replaced, outrigger_bytes_t raw,
    const outrigger_tuple_of_bytes_and_bytes_t *metadata, size_t metadata_count, outrigger_owned_bytes_t *response,
    outrigger_optional_admission_t *out)
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
    outrigger_put_hash(&request, replaced);
    outrigger_put_bytes(&request, raw);
    outrigger_put_list_of_tuple_of_bytes_and_bytes(&request, metadata, metadata_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_REPLACE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_optional_admission(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Waits until no other call makes a payment of the wallet, and keeps others waiting until this call has ended: called
 * before a payment looks at the coins, it keeps two payments from choosing the same one. What the call reads afterwards
 * is the wallet as the payments before it left it. Nothing where this call has begun one already. A call that takes
 * longer than a minute keeps nobody waiting any more; should its payment then spend what another has spent, `send`
 * refuses it. Since minor 1.
 *
 * OUTRIGGER_STATUS_STALE once nobody waits for the call's answer; OUTRIGGER_STATUS_UNSUPPORTED for methods marked
 * `inline`, which may not wait, and outside of calls.
 *
 * Request: nothing. Response: [nothing].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: the arguments are copied.
 */
static inline int32_t outrigger_wallet_begin_payment(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_owned_bytes_t *response)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    int32_t status = OUTRIGGER_STATUS_OK;
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_BEGIN_PAYMENT, scope, &request, &own);
    return outrigger_answered(status, true, &own, response);
}

/**
 * What scripts of the wallet received, in no order that means anything. Only those are told that received something
 * which counts. All of them come at once: the answer takes some 32 bytes for each output. Since minor 1.
 *
 * Request: query [received_query]. Response: [list of received].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_received(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_received_query_t *query,
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
    outrigger_put_received_query(&request, query);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_RECEIVED, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_received(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Imports descriptors of the wallet's own keys as `import` does; where it stored one, a wallet that was made blank is
 * blank no more. Since minor 1.
 *
 * Request: descriptors [list of descriptor_import]. Response: [list of import_outcome].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_add_own_descriptors(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_descriptor_import_t *descriptors,
    size_t descriptors_count, outrigger_owned_bytes_t *response, outrigger_list_t *out)
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
    outrigger_put_list_of_descriptor_import(&request, descriptors, descriptors_count);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_ADD_OWN_DESCRIPTORS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_import_outcome(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Whether a transaction of the wallet has spent an output of each of these scripts while it was the wallet's, in their
 * order, whatever became of that transaction. Since minor 1.
 *
 * Request: scripts [list of bytes]. Response: [list of bool].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_spent_from(
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
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_SPENT_FROM, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bool(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The sums of the wallet's coins, as `coins` lists them. Takes the same time however many coins there are, but for
 * those in the mempool, whose transactions are judged anew. Since minor 1.
 *
 * Request: query [balances_query]. Response: [balances].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_wallet_balances(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_balances_query_t *query,
    outrigger_owned_bytes_t *response, outrigger_balances_t *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    outrigger_put_balances_query(&request, query);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_BALANCES, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_balances(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * Whether each of these transactions of the wallet can be replaced (BIP 125), in their order; `Unknown` where the
 * wallet does not have it. The node is asked once for all those of the mempool that do not signal it themselves. Since
 * minor 1.
 *
 * Request: txids [list of hash]. Response: [list of replaceable].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_replaceable(
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
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_REPLACEABLE, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_replaceable(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The labels of the address book, each once and sorted: of its addresses with the purpose `send` where `sending` is
 * true, of the others where it is false, and of all where it is none. Since minor 1.
 *
 * Request: sending [optional bool]. Response: [list of text].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_label_names(
    const outrigger_service_t *wallet, uint64_t scope, const outrigger_optional_bool_t *sending,
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
    outrigger_put_optional_bool(&request, sending);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LABEL_NAMES, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_bytes(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * The addresses with a label, in no order that means anything. Since minor 1.
 *
 * Request: label [text]. Response: [list of labelled_address].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_labelled(
    const outrigger_service_t *wallet, uint64_t scope, outrigger_bytes_t label, outrigger_owned_bytes_t *response,
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
    outrigger_put_bytes(&request, label);
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_LABELLED, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_labelled_address(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/**
 * What was imported as keys and scripts, as descriptors without a range: each private key as `combo`, each other script
 * that is not OUTRIGGER_OWNERSHIP_NONE by what is known of it. With private keys where these are asked for and held.
 * OUTRIGGER_STATUS_WALLET_LOCKED when private ones are asked of a locked wallet; OUTRIGGER_STATUS_NOT_GRANTED without
 * the grant for its keys. Since minor 1.
 *
 * Request: private [bool]. Response: [list of descriptor_info].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_wallet_imported_descriptors(
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
    status = outrigger_ask_written(wallet, OUTRIGGER_FN_WALLET_IMPORTED_DESCRIPTORS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_list_of_descriptor_info(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service signer/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * Which of these public keys (33, 65 or 32 bytes) the wallet could sign with, for outputs with these scripts, in their
 * order. A locked wallet answers as an unlocked one would, except that of a descriptor with only some of its private
 * keys all keys count, and none of those behind a hardened wildcard.
 *
 * Request: scripts [list of bytes], public_keys [list of bytes]. Response: [list of bool].
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
 * Request: batch [sign_batch]. Response: [list of optional bytes].
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

/**
 * How many events were dropped because the queue was full.
 *
 * Request: nothing. Response: [u64].
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

/**
 * Writes one line, with the plugin's name beside it.
 *
 * Request: level [level], message [text]. Response: [nothing].
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

/**
 * Whether the host wants the text of a panic beside its place. It does not of a plugin that may use private keys or
 * wallets, whose text may hold a secret, unless the configuration says so. Since minor 1.
 *
 * Request: nothing. Response: [bool].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is. It may be
 * null: nothing but the detail of a failure is lost then.
 * Lifetime: `*out` is a copy, and the arguments are copied.
 */
static inline int32_t outrigger_log_tells_panics(
    const outrigger_service_t *log, uint64_t scope, outrigger_owned_bytes_t *response, bool *out)
{
    outrigger_writer_t request = OUTRIGGER_WRITER;
    outrigger_owned_bytes_t own = OUTRIGGER_NO_BYTES;
    outrigger_reader_t reader;
    int32_t status = OUTRIGGER_STATUS_OK;
    bool read = false;
    memset(out, 0, sizeof *out);
    status = outrigger_ask_written(log, OUTRIGGER_FN_LOG_TELLS_PANICS, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_bool(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

/* ------------------------------------------------------------------------------------------------------------------
 * The service node-rpc/1
 * ------------------------------------------------------------------------------------------------------------------ */

/**
 * Calls a method of the node and waits for its answer. `params` is the JSON text of an array or an object, of at most
 * 33,553,408 bytes. Since minor 1.
 *
 * Within a call it waits for as long as somebody waits for that call's answer: when its client has gone, its deadline
 * has passed or it was answered, it fails with OUTRIGGER_STATUS_STALE, and the node may have done what was asked.
 * Outside of calls it waits for at most 120 seconds. A method that uses it may not be `inline`.
 *
 * Fails with OUTRIGGER_STATUS_NOT_GRANTED for a method that is not granted, or that the node's own list refuses
 * (`rpcwhitelist`); with OUTRIGGER_STATUS_UNSUPPORTED where the host stands in front of no bitcoind, and in a call of
 * an inline method; with OUTRIGGER_STATUS_MALFORMED for other parameters; with OUTRIGGER_STATUS_NODE_UNAVAILABLE while
 * the node is away, starts, or takes no more work; with OUTRIGGER_STATUS_REFUSED for a result of more than 67,108,864
 * bytes.
 *
 * Request: method [text], params [bytes]. Response: [node_reply].
 * Threads: any, from `init` until `stop` has returned; of one scope, one at a time.
 * Ownership: the arguments stay the caller's; `*response` is the caller's to release, whatever the status is.
 * Lifetime: what `*out` points to ends with `*response`; the arguments are copied.
 */
static inline int32_t outrigger_node_rpc_call(
    const outrigger_service_t *node_rpc, uint64_t scope, outrigger_bytes_t method, outrigger_bytes_t params,
    outrigger_owned_bytes_t *response, outrigger_node_reply_t *out)
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
    outrigger_put_bytes(&request, method);
    outrigger_put_bytes(&request, params);
    status = outrigger_ask_written(node_rpc, OUTRIGGER_FN_NODE_RPC_CALL, scope, &request, &own);
    reader = outrigger_read(outrigger_lend(&own));
    read = status == OUTRIGGER_STATUS_OK && outrigger_get_node_reply(&reader, out);
    if (!read) {
        memset(out, 0, sizeof *out);
    }
    return outrigger_answered(status, read, &own, response);
}

#ifdef __cplusplus
}
#endif

#endif
