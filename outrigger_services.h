/* outrigger_services.h: The services, the positions of their functions, and the messages. outrigger.h says what holds everywhere. */
#ifndef OUTRIGGER_SERVICES_H
#define OUTRIGGER_SERVICES_H

#include "outrigger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The service chain/1 ---------------------------------------------------------------------------------------------- */

/* The chain. */
#define OUTRIGGER_SERVICE_CHAIN "chain/1"
enum {
    OUTRIGGER_FN_CHAIN_TIP = 0, /* () -> tip: The best block. */
    OUTRIGGER_FN_CHAIN_INFO = 1, /* () -> chain_info: Which chain this is and where it stands. */
    /* (block [block_ref]) -> optional block_info: A block's entry in the index; none when it is unknown. */
    OUTRIGGER_FN_CHAIN_BLOCK_INFO = 2,
    /* (hash [hash]) -> optional bytes: A block's serialisation, on any branch; none when it is unknown, only its
       header is known, or the node has dropped it (`-prune`). */
    OUTRIGGER_FN_CHAIN_BLOCK = 3,
    /* (hash [hash]) -> optional list of spent_outputs: What each transaction of a connected block spent, the
       coinbase's entry being empty; none where the node has dropped it, or is a bitcoind before Bitcoin Core 23, which
       does not tell it. */
    OUTRIGGER_FN_CHAIN_SPENT_OUTPUTS = 4,
    /* (txid [hash]) -> optional confirmed_transaction: The confirmed transaction of an id on the best chain. */
    OUTRIGGER_FN_CHAIN_TRANSACTION = 5,
    /* (outpoints [list of out_point]) -> list of optional coin: The unspent outputs of the best chain at these
       outpoints, in their order. */
    OUTRIGGER_FN_CHAIN_COINS = 6,
    /* (hash [hash]) -> optional block_info: The last block that a block and the best chain share; none when the
       block is unknown. */
    OUTRIGGER_FN_CHAIN_FORK_POINT = 7,
    /* () -> list of chain_tip: The ends of all branches, the best chain's first, then by falling height. */
    OUTRIGGER_FN_CHAIN_TIPS = 8,
    OUTRIGGER_FN_CHAIN_NEXT_BLOCK = 9, /* () -> next_block: What a block on the tip must and may be. */
    OUTRIGGER_FN_CHAIN_TIME = 10, /* () -> u64: The host's time, in seconds: the clock's, or the mocked one. */
    /* (raw [bytes]) -> verdict: Judges a block on the tip without its proof of work and without keeping anything
       (BIP 23 proposal). */
    OUTRIGGER_FN_CHAIN_CHECK_BLOCK = 11,
    /* (raw [bytes]) -> verdict: Stores a block and, where it makes the best chain, connects it. */
    OUTRIGGER_FN_CHAIN_SUBMIT_BLOCK = 12,
    /* (raw [bytes]) -> verdict: Stores a header (80 bytes) whose previous block is known. */
    OUTRIGGER_FN_CHAIN_SUBMIT_HEADER = 13,
    /* (hash [hash]) -> nothing: Marks a block and all that builds on it as invalid, and goes to the best chain that
       remains. */
    OUTRIGGER_FN_CHAIN_INVALIDATE_BLOCK = 14,
    /* (hash [hash]) -> nothing: Takes back what `invalidate_block` did to a block, its ancestors and descendants. */
    OUTRIGGER_FN_CHAIN_RECONSIDER_BLOCK = 15,
    /* (hash [hash]) -> nothing: Prefers a block to others of the same work, as if it had come first. */
    OUTRIGGER_FN_CHAIN_PRECIOUS_BLOCK = 16,
    /* (seconds [u64]) -> nothing: Sets the host's time in seconds; 0 goes back to the clock. */
    OUTRIGGER_FN_CHAIN_SET_MOCK_TIME = 17,
    /* (outpoint [optional out_point], limit [u32]) -> list of unspent_output: The unspent outputs of the best chain
       that follow this one, or the first ones, by the bytes of the transaction's id and then by index: at most so many,
       and fewer where they would make a large answer, but one at least where there is any. Since minor 1. */
    OUTRIGGER_FN_CHAIN_COINS_AFTER = 18,
    /* (hash [hash]) -> optional list of deployment: The changes of the rules as they stand with a block of any
       branch, in bitcoind's order; none when it is unknown. Since minor 1. */
    OUTRIGGER_FN_CHAIN_DEPLOYMENTS = 19,
    OUTRIGGER_FN_CHAIN_NETWORK = 20, /* () -> text: The network that the node is on. Since minor 1. */
    /* () -> list of publication: What is published over ZMQ, in the order in which it is sent; nothing in front of a
       bitcoind. Since minor 1. */
    OUTRIGGER_FN_CHAIN_PUBLICATIONS = 21,
    /* (scripts [list of bytes], outpoint [optional out_point], limit [u32]) -> coin_search: Looks for scripts among
       the unspent outputs that follow this one, or among the first ones, in the order of `coins_after`. Since minor 1.
       */
    OUTRIGGER_FN_CHAIN_FIND_COINS = 22,
    /* () -> nothing: Waits until the loaded wallets have taken over all that the node had told them at the call
       (bitcoind's syncwithvalidationinterfacequeue). Since minor 1. */
    OUTRIGGER_FN_CHAIN_WAIT_FOR_WALLETS = 23,
    /* () -> optional u32: The height of the lowest block from which on the node has all, where it began with a
       snapshot of the unspent outputs (assumeutxo), and fetches and validates the blocks before in the background; none
       of any other node. Since minor 1. */
    OUTRIGGER_FN_CHAIN_BACKGROUND_VALIDATION = 24,
};

/* The service mempool/1 -------------------------------------------------------------------------------------------- */

/* The unconfirmed transactions. */
#define OUTRIGGER_SERVICE_MEMPOOL "mempool/1"
enum {
    OUTRIGGER_FN_MEMPOOL_INFO = 0, /* () -> mempool_info: The mempool as a whole. */
    OUTRIGGER_FN_MEMPOOL_IDS = 1, /* () -> list of hash: All ids, in the order they came. */
    /* (txids [list of hash]) -> list of optional mempool_entry: The entries of these ids, in their order. */
    OUTRIGGER_FN_MEMPOOL_ENTRIES = 2,
    /* (txids [list of hash]) -> list of optional raw_transaction: The transactions of these ids, in their order. */
    OUTRIGGER_FN_MEMPOOL_TRANSACTIONS = 3,
    /* (outpoints [list of out_point]) -> list of optional hash: The transactions of the mempool that spend these
       outpoints, in their order. */
    OUTRIGGER_FN_MEMPOOL_SPENDERS = 4,
    OUTRIGGER_FN_MEMPOOL_SUBMIT = 5, /* (raw [bytes], max_feerate [u64]) -> admission: Offers a transaction. */
    /* (raw [bytes], max_feerate [u64]) -> admission: As `submit`, keeping nothing. */
    OUTRIGGER_FN_MEMPOOL_TRY_SUBMIT = 6,
    /* (known [optional u64]) -> optional candidate: The selection for a block on the tip, of the mempool as it
       stands; none when its version is the one that the caller knows, so that what has not changed is not handed over
       again. */
    OUTRIGGER_FN_MEMPOOL_CANDIDATE = 7,
    /* (txid [hash], fee_delta [i64]) -> nothing: Adds to (or takes from) the fee that a transaction is selected by,
       in satoshi. */
    OUTRIGGER_FN_MEMPOOL_PRIORITISE = 8,
    OUTRIGGER_FN_MEMPOOL_PRIORITISED = 9, /* () -> list of prioritised: All that was added and stands, by txid. */
    /* (txids [list of hash]) -> list of bool: For each of these ids whether it is of a transaction of the mempool
       that was offered by `submit` and that no peer is known to have. Since minor 1. */
    OUTRIGGER_FN_MEMPOOL_UNBROADCAST = 10,
    /* (blocks [u32], conservative [bool]) -> fee_estimate: The feerate at which a transaction is expected to be
       confirmed within so many blocks. Since minor 1. */
    OUTRIGGER_FN_MEMPOOL_FEE_ESTIMATE = 11,
    /* (transactions [list of bytes], max_feerate [u64]) -> package_outcome: Offers transactions that build on one
       another, parents before their one child: first each by itself, then those together that pay too little by
       themselves. Since minor 1. */
    OUTRIGGER_FN_MEMPOOL_SUBMIT_PACKAGE = 12,
    /* (transactions [list of bytes]) -> package_outcome: What the mempool would say of these transactions, of which
       each pays for itself and none replaces others, unless it is the only one; keeping nothing. Since minor 1. */
    OUTRIGGER_FN_MEMPOOL_TRY_PACKAGE = 13,
    /* () -> text: Writes the mempool to its file, and returns the path. Since minor 1. */
    OUTRIGGER_FN_MEMPOOL_SAVE = 14,
};

/* The service wallet-read/1 ---------------------------------------------------------------------------------------- */

/* What wallets know: for histories, reports and notifiers. */
#define OUTRIGGER_SERVICE_WALLET_READ "wallet-read/1"
enum {
    /* () -> list of text: The names of the loaded wallets, in the order in which they were loaded. */
    OUTRIGGER_FN_WALLET_READ_LIST = 0,
    OUTRIGGER_FN_WALLET_READ_INFO = 1, /* () -> wallet_info: The wallet of the call. */
    /* (scripts [list of bytes]) -> list of optional script_info: What the wallet knows of these scripts, in their
       order; none where it knows nothing. */
    OUTRIGGER_FN_WALLET_READ_SCRIPTS = 2,
    /* (txids [list of hash]) -> history_batch: Those of these transactions that the wallet has, in the order asked
       for (one asked for twice comes twice), in one batch, whose `next` is none. */
    OUTRIGGER_FN_WALLET_READ_TRANSACTIONS = 3,
    /* (txids [list of hash]) -> list of optional bytes: The serialisations of the wallet's transactions of these
       ids, in their order, each with the witness of its `wtxid`; none for those that it does not have. */
    OUTRIGGER_FN_WALLET_READ_RAW_TRANSACTIONS = 4,
    /* (query [history_query]) -> history_batch: A part of the history, in the order of its range or backwards. */
    OUTRIGGER_FN_WALLET_READ_HISTORY = 5,
    /* (numbers [list of u32]) -> list of optional text: The public texts of descriptors by their numbers and with
       checksum, in their order: as they were imported, or as `descriptors` gives them since Bitcoin Core 30; none where
       the wallet has no such descriptor. */
    OUTRIGGER_FN_WALLET_READ_DESCRIPTOR_TEXTS = 6,
    /* (after [optional bytes], limit [u32]) -> coin_batch: Coins, from the outpoint after `after` on: by the txid's
       internal bytes, then the output's number as four little-endian bytes. */
    OUTRIGGER_FN_WALLET_READ_COINS = 7,
    /* () -> list of descriptor_info: The descriptors by their numbers, without private keys, hardened steps taken as
       far as the keys allow. */
    OUTRIGGER_FN_WALLET_READ_DESCRIPTORS = 8,
    /* () -> list of descriptor_info: What was imported as keys and scripts, as descriptors without a range: each key
       as `combo`, each other script that is not OUTRIGGER_OWNERSHIP_NONE by what is known of it. */
    OUTRIGGER_FN_WALLET_READ_IMPORTED_DESCRIPTORS = 9,
    /* () -> list of hd_key: The extended keys that the descriptors are written with, by public key and chain code,
       without private keys. */
    OUTRIGGER_FN_WALLET_READ_HD_KEYS = 10,
    /* (after [optional bytes], limit [u32]) -> label_batch: The address book, from the place `after` on: each entry
       once, in an order that does not change. */
    OUTRIGGER_FN_WALLET_READ_LABELS = 11,
    /* (sending [optional bool]) -> list of text: The labels of the address book, each once and sorted: of its
       addresses with the purpose `send` where `sending` is true, of the others where it is false, and of all where it
       is none. */
    OUTRIGGER_FN_WALLET_READ_LABEL_NAMES = 12,
    /* (label [text]) -> list of labelled_address: The addresses with a label, in no order that means anything. */
    OUTRIGGER_FN_WALLET_READ_LABELLED = 13,
    /* (query [received_query]) -> list of received: What scripts of the wallet received, in no order that means
       anything. */
    OUTRIGGER_FN_WALLET_READ_RECEIVED = 14,
    /* (query [balances_query]) -> balances: The sums of the wallet's coins, as `coins` lists them. */
    OUTRIGGER_FN_WALLET_READ_BALANCES = 15,
    /* (query [balances_query]) -> balances: The sums of the coins that only payments outside the mempool spend:
       `balances` leaves them out, while such a payment may still confirm. */
    OUTRIGGER_FN_WALLET_READ_SPENT_OUTSIDE_MEMPOOL = 16,
    /* (scripts [list of bytes]) -> list of bool: Whether a transaction of the wallet has spent an output of each of
       these scripts while it was the wallet's, in their order, whatever became of that transaction. */
    OUTRIGGER_FN_WALLET_READ_SPENT_FROM = 17,
    /* (outpoints [list of out_point]) -> list of list of hash: The transactions of the wallet that spend each of
       these outpoints, in their order, whatever became of them. */
    OUTRIGGER_FN_WALLET_READ_SPENDERS = 18,
    /* () -> list of out_point: The locked outputs: by the txid's internal bytes, then the output's number. */
    OUTRIGGER_FN_WALLET_READ_LOCKED_COINS = 19,
    /* (txids [list of hash]) -> list of replaceable: Whether each of these transactions of the wallet can be
       replaced (BIP 125), in their order; `Unknown` where the wallet does not have it. */
    OUTRIGGER_FN_WALLET_READ_REPLACEABLE = 20,
    /* (txids [list of hash]) -> list of list of hash: The ids with other witnesses that the wallet has met of each
       of these transactions, in their order; none where it has met one witness, or does not have the transaction. */
    OUTRIGGER_FN_WALLET_READ_ALTERNATE_WTXIDS = 21,
    /* () -> spend_settings: What holds for payments of the wallet: what the operator has set for all, and what
       `set_pay_feerate` has. */
    OUTRIGGER_FN_WALLET_READ_SPEND_SETTINGS = 22,
};

/* The service wallet-book/1 ---------------------------------------------------------------------------------------- */

/* Addresses, labels, texts and locks of coins: for shops. */
#define OUTRIGGER_SERVICE_WALLET_BOOK "wallet-book/1"
enum {
    /* (kind [address_type], internal [bool], label [optional text]) -> bytes: A fresh address's script, entered in
       the address book with the label (none: for change, not entered): at the next index of the active descriptor of
       the type and side, once as many scripts as are kept ahead are derived from that index on; without one, of the
       oldest key of the imported keypool, which is then watched. */
    OUTRIGGER_FN_WALLET_BOOK_NEW_ADDRESS = 0,
    /* (script [bytes]) -> bool: Gives back an address that `new_address` gave and that is not needed, as that of the
       change of a payment which is not made: its index is the next one again, and what was derived ahead stays. */
    OUTRIGGER_FN_WALLET_BOOK_RETURN_ADDRESS = 1,
    /* (size [optional u32]) -> nothing: Derives scripts until `size` lie ahead of the next index of each active
       descriptor; none: as many as the host keeps ahead. */
    OUTRIGGER_FN_WALLET_BOOK_REFILL_KEYPOOL = 2,
    /* (script [bytes], label [text]) -> nothing: Sets a script's label in the address book, also of others' scripts.
       */
    OUTRIGGER_FN_WALLET_BOOK_SET_LABEL = 3,
    /* (txid [hash], key [text], value [text]) -> nothing: Stores a text with a transaction (`comment`, `to`) in the
       place of the former one of the key; an empty one is taken away. */
    OUTRIGGER_FN_WALLET_BOOK_SET_METADATA = 4,
    /* (coins [list of out_point], persistent [bool]) -> nothing: Locks outputs, the wallet's or not: who makes
       payments does not choose them. */
    OUTRIGGER_FN_WALLET_BOOK_LOCK_COINS = 5,
    /* (coins [list of out_point]) -> nothing: Unlocks these outputs, and forgets persistent locks. */
    OUTRIGGER_FN_WALLET_BOOK_UNLOCK_COINS = 6,
};

/* The service wallet-pay/1 ----------------------------------------------------------------------------------------- */

/* Payments of a wallet. */
#define OUTRIGGER_SERVICE_WALLET_PAY "wallet-pay/1"
enum {
    /* () -> nothing: Waits until no other call makes a payment of the wallet, and keeps others waiting until this
       call has ended: called before a payment looks at the coins, it keeps two payments from choosing the same one. */
    OUTRIGGER_FN_WALLET_PAY_BEGIN_PAYMENT = 0,
    /* (raw [bytes], metadata [list of (text, text)]) -> optional admission: Sends a signed transaction of the
       wallet. */
    OUTRIGGER_FN_WALLET_PAY_SEND = 1,
    /* (replaced [hash], raw [bytes], metadata [list of (text, text)]) -> optional admission: Sends a transaction as
       `send` does that takes the place of one of the wallet which is not confirmed: that this spends the same is no
       reason to refuse it. */
    OUTRIGGER_FN_WALLET_PAY_REPLACE = 2,
    /* (txid [hash]) -> nothing: Gives up a transaction that is neither in the chain nor in the mempool, and what of
       the wallet builds on it: what they spend is free. */
    OUTRIGGER_FN_WALLET_PAY_ABANDON = 3,
    /* (feerate [optional u64]) -> nothing: Sets the feerate of payments that name none, until the wallet is
       unloaded; none: it is estimated again. */
    OUTRIGGER_FN_WALLET_PAY_SET_PAY_FEERATE = 4,
};

/* The service wallet-import/1 -------------------------------------------------------------------------------------- */

/* Imports and rescans. */
#define OUTRIGGER_SERVICE_WALLET_IMPORT "wallet-import/1"
enum {
    /* (requests [list of import]) -> list of import_outcome: Imports all requests in one write, in their order, each
       with its own outcome: one that is refused changes nothing and leaves the others as they are. */
    OUTRIGGER_FN_WALLET_IMPORT_IMPORT = 0,
    /* () -> u64: Reserves the wallet's one rescan and gives its number, which no other rescan had since the wallet
       was loaded. */
    OUTRIGGER_FN_WALLET_IMPORT_RESCAN_RESERVE = 1,
    OUTRIGGER_FN_WALLET_IMPORT_RESCAN_RELEASE = 2, /* (rescan [u64]) -> nothing: Gives a reservation back unused. */
    /* (rescan [u64], from_time [u64]) -> nothing: Starts the reserved rescan at the first block whose
       running-maximum time is at least `from_time` less two hours, up to where the wallet stands, then the whole
       mempool. */
    OUTRIGGER_FN_WALLET_IMPORT_RESCAN_START = 3,
    /* (rescan [u64], first [u32], last [optional u32]) -> nothing: Starts the reserved rescan as `rescan_start`
       does, at the height `first` and up to the height `last`; without one up to where the wallet stands, then the
       whole mempool. */
    OUTRIGGER_FN_WALLET_IMPORT_RESCAN_HEIGHTS = 4,
    OUTRIGGER_FN_WALLET_IMPORT_RESCAN_ABORT = 5, /* () -> bool: Aborts the running rescan; whether there was one. */
    /* (raw [bytes], block [hash], index [u32]) -> nothing: Takes over a transaction that pays to the wallet, at its
       position in a block of the best chain, as if the wallet had met it there. */
    OUTRIGGER_FN_WALLET_IMPORT_ADD_CONFIRMED = 6,
    /* (txid [hash]) -> nothing: Removes a transaction, as if it had never been met; it is met again where a block or
       the mempool has it. */
    OUTRIGGER_FN_WALLET_IMPORT_REMOVE_TRANSACTION = 7,
};

/* The service wallet-admin/1 --------------------------------------------------------------------------------------- */

/* The wallets themselves: made, loaded, encrypted, unlocked, backed up and restored. */
#define OUTRIGGER_SERVICE_WALLET_ADMIN "wallet-admin/1"
enum {
    /* (options [create_options]) -> list of text: Makes a wallet and loads it, as the last of the loaded ones. */
    OUTRIGGER_FN_WALLET_ADMIN_CREATE = 0,
    /* (name [text], load_on_startup [optional bool]) -> list of text: Loads a wallet as the last of the loaded ones,
       locked if it is encrypted. */
    OUTRIGGER_FN_WALLET_ADMIN_LOAD = 1,
    /* (name [text], load_on_startup [optional bool]) -> list of text: Unloads a wallet; its file stays, with
       everything that was written. */
    OUTRIGGER_FN_WALLET_ADMIN_UNLOAD = 2,
    /* () -> list of text: The names of all wallets on disk, sorted by their bytes. */
    OUTRIGGER_FN_WALLET_ADMIN_DIRECTORY = 3,
    /* (name [text], file [text], load_on_startup [optional bool]) -> list of text: Makes a wallet of a name from the
       file of a backup and loads it, as `load` does. */
    OUTRIGGER_FN_WALLET_ADMIN_RESTORE = 4,
    /* (file [text]) -> nothing: Writes a copy of the wallet as it is now to a file, which `restore` opens. */
    OUTRIGGER_FN_WALLET_ADMIN_BACKUP = 5,
    /* (file [text]) -> nothing: Writes a copy of the wallet without its private keys to a new file, which `restore`
       opens. */
    OUTRIGGER_FN_WALLET_ADMIN_EXPORT_WATCH_ONLY = 6,
    /* (avoid [bool]) -> nothing: Sets whether the wallet avoids reused addresses. */
    OUTRIGGER_FN_WALLET_ADMIN_SET_AVOID_REUSE = 7,
    /* (descriptors [list of descriptor_import]) -> list of import_outcome: Imports descriptors of the wallet's own
       keys as `import` does; where it stored one, a wallet that was made blank is blank no more. */
    OUTRIGGER_FN_WALLET_ADMIN_ADD_OWN_DESCRIPTORS = 8,
    /* (passphrase [secret]) -> nothing: Seals the wallet's keys with a passphrase and locks it. */
    OUTRIGGER_FN_WALLET_ADMIN_ENCRYPT = 9,
    /* (passphrase [secret], seconds [u64]) -> nothing: Unlocks an encrypted wallet for a time from now on, in
       seconds, at most 100,000,000. */
    OUTRIGGER_FN_WALLET_ADMIN_UNLOCK = 10,
    OUTRIGGER_FN_WALLET_ADMIN_LOCK = 11, /* () -> nothing: Locks it now; nothing where it is locked. */
    /* (old [secret], new [secret]) -> nothing: Changes the passphrase, and leaves it locked or unlocked. */
    OUTRIGGER_FN_WALLET_ADMIN_CHANGE_PASSPHRASE = 12,
};

/* The service wallet-keys/1 ---------------------------------------------------------------------------------------- */

/* Private keys of a wallet, given out. */
#define OUTRIGGER_SERVICE_WALLET_KEYS "wallet-keys/1"
enum {
    /* () -> list of descriptor_info: The descriptors as `descriptors` gives them, with private keys where these are
       held, as they were imported. */
    OUTRIGGER_FN_WALLET_KEYS_PRIVATE_DESCRIPTORS = 0,
    /* () -> list of descriptor_info: What was imported as `imported_descriptors` gives it, with private keys where
       these are held. */
    OUTRIGGER_FN_WALLET_KEYS_PRIVATE_IMPORTED_DESCRIPTORS = 1,
    /* () -> list of hd_key: The extended keys as `hd_keys` gives them, with private keys where these are held. */
    OUTRIGGER_FN_WALLET_KEYS_PRIVATE_HD_KEYS = 2,
    /* (public_key_hash [array 20]) -> optional secret: The private key of a public key of this HASH160, as WIF: of a
       descriptor that is written with it, or derives a P2PKH, P2WPKH or P2SH-P2WPKH script of it, or imported. */
    OUTRIGGER_FN_WALLET_KEYS_PRIVATE_KEY = 3,
};

/* The service signer/1 --------------------------------------------------------------------------------------------- */

/* Signatures by the keys of the call's wallet. */
#define OUTRIGGER_SERVICE_SIGNER "signer/1"
enum {
    /* (scripts [list of bytes], public_keys [list of bytes]) -> list of bool: Which of these public keys (33, 65 or
       32 bytes) the wallet could sign with, for outputs with these scripts, in their order. */
    OUTRIGGER_FN_SIGNER_AVAILABLE = 0,
    /* (batch [sign_batch]) -> list of optional bytes: Signs each request, in their order; none where the wallet has
       no such key for these scripts. */
    OUTRIGGER_FN_SIGNER_SIGN_MANY = 1,
};

/* The service events/1 --------------------------------------------------------------------------------------------- */

/* The state of this instance's event queue. */
#define OUTRIGGER_SERVICE_EVENTS "events/1"
enum {
    OUTRIGGER_FN_EVENTS_DROPPED = 0, /* () -> u64: How many events were dropped because the queue was full. */
};

/* The service log/1 ------------------------------------------------------------------------------------------------ */

/* The host's log. */
#define OUTRIGGER_SERVICE_LOG "log/1"
enum {
    /* (level [level], message [text]) -> nothing: Writes one line, with the plugin's name beside it. */
    OUTRIGGER_FN_LOG_WRITE = 0,
    /* () -> bool: Whether the host wants the text of a panic beside its place. Since minor 1. */
    OUTRIGGER_FN_LOG_TELLS_PANICS = 1,
};

/* The service node-rpc/1 ------------------------------------------------------------------------------------------- */

/* The methods of the bitcoind that the host stands in front of. */
#define OUTRIGGER_SERVICE_NODE_RPC "node-rpc/1"
enum {
    /* (method [text], params [bytes]) -> node_reply: Calls a method of the node and waits for its answer. Since
       minor 1. */
    OUTRIGGER_FN_NODE_RPC_CALL = 0,
};

/* Messages --------------------------------------------------------------------------------------------------------- */

/* tip: hash [hash], height [u32], time [u32], median_time [u32] */
/* chain_info: network [text], tip [tip], headers [u32], size_on_disk [optional u64], coins [optional u64], warnings
   [list of text since minor 1] */
enum { /* block_ref */
    OUTRIGGER_BLOCK_REF_HASH = 0, /* hash [hash] */
    OUTRIGGER_BLOCK_REF_HEIGHT = 1, /* height [u32] */
};
enum { /* block_state */
    OUTRIGGER_BLOCK_STATE_HEADER_ONLY = 0,
    OUTRIGGER_BLOCK_STATE_STORED = 1,
    OUTRIGGER_BLOCK_STATE_VALID = 2,
    OUTRIGGER_BLOCK_STATE_FAILED = 3,
};
/* block_info: hash [hash], header [array 80], height [u32], chain_work [array 32], transactions [optional u32],
   median_time [u32], state [block_state], in_best_chain [bool], next [optional hash], size [optional u32] */
/* tx_out: value [u64], script_pubkey [bytes] */
/* coin: output [tx_out], height [u32], coinbase [bool] */
/* spent_outputs: coins [list of coin] */
/* confirmed_transaction: raw [bytes], block [hash], index [u32] */
/* out_point: txid [hash], vout [u32] */
/* chain_tip: hash [hash], height [u32], branch_length [u32], state [block_state] */
/* next_block: tip [tip], version [i32], bits [u32], min_time [u32], time [u32], subsidy [u64], rules [list of text],
   available [list of (text, u8)] */
enum { /* verdict */
    OUTRIGGER_VERDICT_VALID = 0,
    OUTRIGGER_VERDICT_DUPLICATE = 1,
    OUTRIGGER_VERDICT_DUPLICATE_INVALID = 2,
    OUTRIGGER_VERDICT_DUPLICATE_INCONCLUSIVE = 3,
    OUTRIGGER_VERDICT_INCONCLUSIVE = 4,
    OUTRIGGER_VERDICT_NOT_BEST_PREVIOUS = 5,
    OUTRIGGER_VERDICT_INVALID = 6, /* reason [text], detail [text since minor 1] */
    OUTRIGGER_VERDICT_UNDECODABLE = 7,
    OUTRIGGER_VERDICT_NO_COINBASE = 8,
};
/* unspent_output: outpoint [out_point], coin [coin] */
enum { /* deployment_stage */
    OUTRIGGER_DEPLOYMENT_STAGE_DEFINED = 0,
    OUTRIGGER_DEPLOYMENT_STAGE_STARTED = 1,
    OUTRIGGER_DEPLOYMENT_STAGE_LOCKED_IN = 2,
    OUTRIGGER_DEPLOYMENT_STAGE_ACTIVE = 3,
    OUTRIGGER_DEPLOYMENT_STAGE_FAILED = 4,
};
/* signalled_deployment: bit [u8], start_time [i64], timeout [i64], min_activation_height [u32], stage
   [deployment_stage], since [u32], next_stage [deployment_stage], next_since [u32], period [u32], threshold [u32],
   signals [list of bool] */
enum { /* deployment_rule */
    OUTRIGGER_DEPLOYMENT_RULE_BURIED = 0, /* height [u32] */
    OUTRIGGER_DEPLOYMENT_RULE_SIGNALLED = 1, /* progress [signalled_deployment] */
};
/* deployment: name [text], rule [deployment_rule] */
/* publication: topic [text], address [text], high_water_mark [u32] */
/* found_coin: output [unspent_output], block [hash] */
/* coin_search: found [list of found_coin], searched [u32], last [optional out_point] */
/* cluster_limits: count [u64], size [u64] */
/* mempool_info: transactions [u64], virtual_size [u64], usage [u64], total_fee [u64], max_usage [u64], min_feerate
   [u64], relay_feerate [u64], incremental_feerate [u64], sequence [u64], moves [u64 since minor 1], unbroadcast [u64
   since minor 1], clusters [optional cluster_limits since minor 1] */
/* mempool_entry: txid [hash], wtxid [hash], weight [u64], virtual_size [u64], fee [u64], modified_fee [i64], time
   [u64], height [u32], ancestor_count [u64], ancestor_size [u64], ancestor_fees [i64], descendant_count [u64],
   descendant_size [u64], descendant_fees [i64], depends [list of hash], spent_by [list of hash], replaceable [bool] */
/* raw_transaction: raw [bytes] */
enum { /* admission */
    OUTRIGGER_ADMISSION_ACCEPTED = 0, /* txid [hash], wtxid [hash], virtual_size [u64], fee [u64] */
    OUTRIGGER_ADMISSION_KNOWN = 1, /* txid [hash] */
    OUTRIGGER_ADMISSION_REJECTED = 2, /* reason [text], detail [text] */
    OUTRIGGER_ADMISSION_MISSING_INPUTS = 3,
    OUTRIGGER_ADMISSION_ALREADY_IN_CHAIN = 4,
    OUTRIGGER_ADMISSION_UNDECODABLE = 5,
    OUTRIGGER_ADMISSION_FEE_TOO_HIGH = 6, /* fee [u64] */
};
/* selected: raw [bytes], txid [hash], wtxid [hash], fee [u64], sigops [u64], weight [u64], depends [list of u32] */
/* candidate: version [u64], next [next_block], transactions [list of selected], fees [u64], sequence [u64] */
/* prioritised: txid [hash], fee_delta [i64], modified_fee [optional i64] */
/* fee_estimate: feerate [optional u64], blocks [u32] */
enum { /* package_member */
    OUTRIGGER_PACKAGE_MEMBER_ACCEPTED = 0, /* virtual_size [u64], fee [u64], feerate [u64], included [list of hash] */
    OUTRIGGER_PACKAGE_MEMBER_IN_MEMPOOL = 1, /* virtual_size [u64], fee [u64] */
    OUTRIGGER_PACKAGE_MEMBER_OTHER_WITNESS = 2, /* wtxid [hash] */
    OUTRIGGER_PACKAGE_MEMBER_REJECTED = 3, /* reason [text], detail [text] */
    OUTRIGGER_PACKAGE_MEMBER_NOT_JUDGED = 4,
};
/* package_outcome: reason [text], detail [text], is_policy [bool], members [list of package_member], replaced [list
   of hash] */
/* synced: hash [hash], height [u32], time [u32], median_time [u32] */
/* rescan_progress: duration [u64], millionths [u32] */
enum { /* address_type */
    OUTRIGGER_ADDRESS_TYPE_LEGACY = 0,
    OUTRIGGER_ADDRESS_TYPE_P2SH_SEGWIT = 1,
    OUTRIGGER_ADDRESS_TYPE_BECH32 = 2,
    OUTRIGGER_ADDRESS_TYPE_BECH32M = 3,
};
/* address_source: kind [address_type], internal [bool], available [bool] */
/* wallet_info: name [text], synced [synced], private_keys_enabled [bool], blank [bool], avoid_reuse [bool],
   encrypted [bool], locked [bool], unlocked_until [u64], rescan [optional rescan_progress], transactions [u64],
   keypool_external [u64], keypool_internal [u64], birth_time [u64], backup_needed [bool], last_backup [u64], keypool
   [u32 since minor 1], sources [list of address_source since minor 1], warnings [list of text since minor 1],
   node_behind [optional synced since minor 1] */
enum { /* ownership */
    OUTRIGGER_OWNERSHIP_NONE = 0,
    OUTRIGGER_OWNERSHIP_WATCH_ONLY = 1,
    OUTRIGGER_OWNERSHIP_SPENDABLE = 2,
};
/* tap_leaf: script [bytes], control_block [bytes] */
/* taproot_data: internal_key [array 32], merkle_root [optional array 32], leaves [list of tap_leaf] */
/* solving_data: scripts [list of bytes], public_keys [list of bytes], taproot [optional taproot_data] */
/* key_origin: public_key [bytes], fingerprint [array 4], path [text] */
/* script_info: ownership [ownership], solvable [bool], label [optional text], change [bool], internal [bool],
   timestamp [u64], descriptor [text], parents [list of text], solving [solving_data], origins [list of key_origin] */
enum { /* tx_state */
    OUTRIGGER_TX_STATE_CONFIRMED = 0, /* block [hash], height [u32], index [u32], time [u32] */
    OUTRIGGER_TX_STATE_IN_MEMPOOL = 1,
    OUTRIGGER_TX_STATE_INACTIVE = 2,
    OUTRIGGER_TX_STATE_ABANDONED = 3,
    OUTRIGGER_TX_STATE_CONFLICTED = 4, /* block [hash], height [u32] */
};
/* wallet_output: value [u64], script [bytes], ownership [ownership], change [bool], label [optional text],
   descriptors [list of u32] */
/* wallet_transaction: contested [bool], state [tx_state], txid [hash], wtxid [hash], order_position [u64], time
   [u64], time_received [u64], coinbase [bool], signals [bool], lock_time [u32], total_output [u64], debit_spendable
   [u64], debit_watch_only [u64], metadata [list of (text, text)], inputs [list of out_point], outputs [list of
   wallet_output] */
enum { /* replaceable */
    OUTRIGGER_REPLACEABLE_NO = 0,
    OUTRIGGER_REPLACEABLE_YES = 1,
    OUTRIGGER_REPLACEABLE_UNKNOWN = 2,
};
/* unsettled_state: conflicts [list of hash], mempool_conflicts [list of hash], trusted [bool], replaceable
   [replaceable] */
/* history_row: transaction [framed wallet_transaction], unsettled [optional unsettled_state] */
/* history_batch: rows [list of history_row], next [optional bytes] */
enum { /* history_range */
    OUTRIGGER_HISTORY_RANGE_CONFIRMED = 0, /* from_height [u32] */
    OUTRIGGER_HISTORY_RANGE_UNCONFIRMED = 1,
    OUTRIGGER_HISTORY_RANGE_CONFLICTED = 2, /* from_height [u32] */
    OUTRIGGER_HISTORY_RANGE_ALL = 3,
};
/* history_query: range [history_range], reverse [bool], after [optional bytes], limit [u32] */
/* wallet_coin: outpoint [out_point], value [u64], script [bytes], state [tx_state], coinbase [bool], ownership
   [ownership], change [bool], label [optional text], trusted [bool], from_us [bool] */
/* coin_batch: coins [list of wallet_coin], next [optional bytes] */
/* descriptor_info: text [secret], timestamp [u64], active [bool], internal [optional bool], range [optional (u32,
   u32)], next_index [u32] */
/* hd_key: xpub [text], has_private [bool], xprv [optional secret], descriptors [list of (text, bool)] */
/* labelled_script: script [bytes], label [text], ownership [ownership] */
/* label_batch: entries [list of labelled_script], next [optional bytes], sending [list of bytes since minor 1] */
/* labelled_address: script [bytes], sending [bool] */
enum { /* received_by */
    OUTRIGGER_RECEIVED_BY_ADDRESS_BOOK = 0,
    OUTRIGGER_RECEIVED_BY_SCRIPTS = 1, /* scripts [list of bytes] */
};
/* received_query: by [received_by], min_depth [i64], min_coinbase_depth [i64] */
/* received: script [bytes], ownership [ownership], label [optional text], amount [u64], depth [i64], txids [list of
   hash] */
/* balances_query: min_depth [i64], avoid_reuse [bool] */
/* coin_totals: trusted [u64], untrusted_pending [u64], immature [u64] */
/* balances: mine [coin_totals], watch_only [optional coin_totals], used [u64] */
/* spend_settings: fallback_feerate [optional u64], min_feerate [u64], discard_feerate [u64], consolidate_feerate
   [u64], pay_feerate [optional u64], max_fee [u64], max_grouping_fee [optional u64], target [u32], replaceable [bool],
   spend_unconfirmed_change [bool], avoid_partial_spends [bool], reject_long_chains [bool], address_type [address_type],
   change_type [optional address_type], replaces_any [bool since minor 1] */
/* descriptor_import: text [secret], range [optional (u32, u32)], next_index [optional u32], active [bool], internal
   [optional bool], label [optional text], timestamp [u64] */
/* keys_import: script_pubkeys [list of bytes], scripts [list of bytes], private_keys [list of secret], public_keys
   [list of bytes], origins [list of key_origin], solving_data [bool], internal [bool], label [text], keypool [bool],
   timestamp [u64] */
enum { /* import */
    OUTRIGGER_IMPORT_DESCRIPTOR = 0, /* descriptor [descriptor_import] */
    OUTRIGGER_IMPORT_KEYS = 1, /* keys [keys_import] */
    OUTRIGGER_IMPORT_PARTS = 2, /* parts [list of keys_import] Since minor 1. */
};
enum { /* import_outcome */
    OUTRIGGER_IMPORT_OUTCOME_IMPORTED = 0, /* missing_private_keys [bool], unknown_output_type [bool] */
    OUTRIGGER_IMPORT_OUTCOME_PRIVATE_KEYS_DISABLED = 1,
    OUTRIGGER_IMPORT_OUTCOME_ALREADY_OWNED = 2, /* script [bytes] */
    OUTRIGGER_IMPORT_OUTCOME_NOT_EXPANDABLE = 3,
    OUTRIGGER_IMPORT_OUTCOME_NO_PRIVATE_KEYS = 4,
    OUTRIGGER_IMPORT_OUTCOME_RANGE_SHRINKS = 5, /* begin [u32], end [u32] */
    OUTRIGGER_IMPORT_OUTCOME_BAD_DESCRIPTOR = 6, /* reason [text] */
    OUTRIGGER_IMPORT_OUTCOME_NOT_STORED = 7,
};
/* create_options: name [text], disable_private_keys [bool], blank [bool], passphrase [secret], avoid_reuse [bool],
   load_on_startup [optional bool] */
enum { /* scheme */
    OUTRIGGER_SCHEME_ECDSA = 0,
    OUTRIGGER_SCHEME_SCHNORR = 1,
    OUTRIGGER_SCHEME_SCHNORR_TWEAKED = 2, /* merkle_root [optional array 32] */
    OUTRIGGER_SCHEME_ECDSA_RECOVERABLE = 3, /* Since minor 1. */
};
/* sign_request: public_key [bytes], digest [array 32], scheme [scheme] */
/* sign_batch: scripts [list of bytes], requests [list of sign_request] */
enum { /* level */
    OUTRIGGER_LEVEL_ERROR = 0,
    OUTRIGGER_LEVEL_WARN = 1,
    OUTRIGGER_LEVEL_INFO = 2,
    OUTRIGGER_LEVEL_DEBUG = 3,
};
enum { /* node_reply */
    OUTRIGGER_NODE_REPLY_RESULT = 0, /* json [bytes] */
    OUTRIGGER_NODE_REPLY_ERROR = 1, /* code [i32], message [text] */
};
enum { /* rescan_outcome */
    OUTRIGGER_RESCAN_OUTCOME_COMPLETE = 0,
    OUTRIGGER_RESCAN_OUTCOME_UNREADABLE = 1, /* block_time [u32] */
    OUTRIGGER_RESCAN_OUTCOME_ABORTED = 2,
};
enum { /* event */
    OUTRIGGER_EVENT_TIP_CHANGED = 0, /* hash [hash], height [u32] */
    OUTRIGGER_EVENT_MEMPOOL_CHANGED = 1, /* sequence [u64] */
    OUTRIGGER_EVENT_WALLET_TRANSACTION = 2, /* wallet [text], txid [hash] */
    /* wallet [text], rescan [u64], outcome [rescan_outcome], last_height [optional u32 since minor 1], widened [bool
       since minor 1] */
    OUTRIGGER_EVENT_RESCAN_FINISHED = 3,
    OUTRIGGER_EVENT_WALLET_LOCK_CHANGED = 4, /* wallet [text], locked [bool] */
    /* wallet [text], blocks [u32], transactions [list of hash] Since minor 1. */
    OUTRIGGER_EVENT_WALLET_REORGANISED = 6,
    OUTRIGGER_EVENT_SHUTTING_DOWN = 5,
};

#ifdef __cplusplus
}
#endif

#endif
