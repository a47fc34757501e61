"""Specter Desktop's own classes (PyPI cryptoadvance.specter): connects, makes a hot wallet and a watch-only one, receives, and
creates, signs and sends a PSBT with each."""

import logging
import tempfile

from common import IN_FRONT, PASSWORD, PORT, USER, expect
from cryptoadvance.specter.specter import Specter

# The path of the keys of a wallet of P2WPKH addresses on a test network (BIP 84).
PATH = "m/84h/1h/0h"
MNEMONIC = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
STRANGER = "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080"
BLOCKS = 101

logging.disable(logging.CRITICAL)


def connect(folder):
    """Specter as it runs, without its web server, connected to the host."""
    specter = Specter(data_folder=folder, config={"auth": {"method": "none"}}, checker_threads=False)
    node = specter.node_manager.add_external_node(
        "BTC", "host", False, "", USER, PASSWORD, str(PORT), "127.0.0.1", "http"
    )
    specter.update_active_node(node.alias)
    specter.check(check_all=True)
    expect("Specter reaches the host", specter.node.is_running, True)
    expect("the chain", specter.chain, "regtest")
    return specter


def hot_device(specter):
    """A device whose keys are in a wallet of the host."""
    manager = specter.wallet_manager
    device = specter.device_manager.add_device("hot", "bitcoincore", [])
    device.setup_device(None, manager)
    device.add_hot_wallet_keys(MNEMONIC, "", [PATH], None, manager, True, [0, 100], ["single"])
    return device


def wallet_of(specter, name, device):
    """Specter's wallet of a device: one that watches, in the host."""
    return specter.wallet_manager.create_wallet(name, 1, "wpkh", [device.keys[0]], [device])


def refresh(wallet):
    wallet.fetch_transactions()
    wallet.update()


def pay(specter, wallet, device, amount):
    """Creates a payment in Specter's wallet, has the hot device sign it, and sends it."""
    psbt = wallet.createpsbt([STRANGER], [amount], fee_rate=2)
    signed = device.sign_psbt(psbt.to_string(), wallet)
    expect("the PSBT is signed", signed["complete"], True)
    final = specter.rpc.finalizepsbt(signed["psbt"])
    expect("the PSBT is final", final["complete"], True)
    txid = specter.rpc.sendrawtransaction(final["hex"])
    specter.rpc.generatetoaddress(1, STRANGER)
    refresh(wallet)
    expect("the payment is confirmed", wallet.rpc.gettransaction(txid)["confirmations"], 1)
    listed = [entry for entry in wallet.txlist() if entry["txid"] == txid]
    expect("Specter lists the payment", [entry["category"] for entry in listed], ["send"])


def main():
    with tempfile.TemporaryDirectory() as folder:
        specter = connect(folder)
        # A node in initial download has no fees and no rescans.
        specter.rpc.generatetoaddress(1, STRANGER)
        specter.check(check_all=True)
        hot = hot_device(specter)
        wallet = wallet_of(specter, "hot wallet", hot)
        # A device that signs elsewhere, with the same keys.
        watched = specter.device_manager.add_device("signer", "generic", [hot.keys[0]])
        watching = wallet_of(specter, "watched wallet", watched)
        expect("both derive the same address", watching.address, wallet.address)
        address = wallet.getnewaddress()
        specter.rpc.generatetoaddress(BLOCKS, address)
        for each in (wallet, watching):
            refresh(each)
            expect("the coin has arrived", float(each.amount_confirmed), 50.0)
        utxo = wallet.full_utxo[0]
        wallet.toggle_freeze_utxo([f"{utxo['txid']}:{utxo['vout']}"])
        refresh(wallet)
        expect("a coin is frozen", float(wallet.amount_frozen) > 0, True)
        wallet.toggle_freeze_utxo([f"{utxo['txid']}:{utxo['vout']}"])
        refresh(wallet)
        pay(specter, wallet, hot, 1)
        refresh(watching)
        pay(specter, watching, hot, 2)
        where = "in front of a bitcoind" if IN_FRONT else "on the embedded chain"
        print(f"Specter Desktop's classes work {where}: two wallets, two payments by PSBT")


main()
