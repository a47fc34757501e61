// A session of bitcoin-core of npm: requests without a version and without a content type, positional and named arguments.

const assert = require('assert');
const { installed, host, username, password, run } = require('./session');

const Client = installed('bitcoin-core');
// The client's logger writes each request to the standard output otherwise.
const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const client = (wallet, version) => new Client({ host, username, password, wallet, version, logger: quiet });

const KEY = 'cMahea7zqjxrtgAbB7LSGbcQUr1uX1ojuat9jZodMN87K7XCyj5v';
const DESCRIPTOR = `wpkh(${KEY})#pdry7alk`;
const COIN = 100000000;

// The error that a call ends with.
const refusal = async call => {
  try {
    return assert.fail(`answered ${JSON.stringify(await call)}`);
  } catch (error) {
    assert.strictEqual(error.name, 'RpcError', error.stack);
    return error.code;
  }
};

run(async () => {
  const node = client();
  assert.strictEqual((await node.getBlockchainInfo()).chain, 'regtest');

  // Wallets and blocks.
  assert.strictEqual((await node.command('createwallet', 'payer')).name, 'payer');
  await node.command('createwallet', 'shop', false, true);
  const [payer, shop] = [client('payer'), client('shop')];
  const address = await payer.getNewAddress('mine');
  const blocks = await node.generateToAddress(101, address);
  assert.strictEqual(blocks[100], await node.getBestBlockHash());
  assert.strictEqual(await payer.getBalance(), 50);

  // Import: this client sends methods that it does not know to the path of no wallet, so one is unloaded meanwhile.
  await node.command('unloadwallet', 'payer');
  const imported = await node.command('importdescriptors', [{ desc: DESCRIPTOR, timestamp: 'now', label: 'till' }]);
  assert.deepStrictEqual(JSON.stringify(imported), '[{"success":true}]');
  await node.command('loadwallet', 'payer');
  const [shopAddress] = await node.command('deriveaddresses', DESCRIPTOR);

  // Send.
  const paid = await payer.sendToAddress(shopAddress, 1.25, 'rent');
  const sent = await payer.getTransaction(paid);
  assert.deepStrictEqual([sent.amount, sent.details[0].category, sent.confirmations], [-1.25, 'send', 0]);
  const received = (await shop.getTransaction(paid)).details[0];
  assert.deepStrictEqual([received.category, received.amount, received.label], ['receive', 1.25, 'till']);
  assert.strictEqual(await refusal(payer.sendToAddress(shopAddress, 100000)), -6);

  // Sign.
  const [coin] = await shop.listUnspent(0);
  const unsigned = await node.createRawTransaction([{ txid: coin.txid, vout: coin.vout }], { [address]: 1.2499 });
  const signed = await node.command('signrawtransactionwithkey', unsigned, [KEY]);
  assert.strictEqual(signed.complete, true);
  const returned = await node.sendRawTransaction(signed.hex);

  // Template.
  const template = await node.getBlockTemplate({ rules: ['segwit'] });
  assert.deepStrictEqual(template.transactions.map(entry => entry.txid), [paid, returned]);
  const fees = template.transactions.reduce((sum, entry) => sum + entry.fee, 0);
  assert.strictEqual(template.coinbasevalue, 50 * COIN + fees);

  // History.
  const before = await node.getBestBlockHash();
  await node.generateToAddress(1, address);
  const since = (await shop.listSinceBlock(before)).transactions;
  const shown = since.map(entry => [entry.category, entry.amount, entry.confirmations]).sort();
  assert.deepStrictEqual(shown, [['receive', 1.25, 1], ['send', -1.2499, 1]]);
  assert.strictEqual((await payer.listTransactions('*', 200)).filter(entry => entry.txid === paid).length, 1);

  // Batches answer in order, each for itself; with a version, arguments go by name.
  const batch = await node.command([
    { method: 'getblockcount', parameters: [] },
    { method: 'getblockhash', parameters: [1000000] },
    { method: 'getblockhash', parameters: [101] },
  ]);
  assert.deepStrictEqual([batch[0], batch[1].code, batch[2]], [102, -8, before]);
  const named = client('payer', '0.21.0');
  assert.strictEqual(await named.getBlockHash({ height: 101 }), before);
  assert.strictEqual((await named.listSinceBlock({ blockhash: before, target_confirmations: 1 })).lastblock, await node.getBestBlockHash());

  // Errors have codes; a wrong password is an error with the status.
  assert.strictEqual(await refusal(node.getBlockHash(1000000)), -8);
  assert.strictEqual(await refusal(node.command('nosuchmethod')), -32601);
  assert.strictEqual(await refusal(new Client({ host, username, password: 'wrong', logger: quiet }).getBlockCount()), 401);
});
