// What rpc.discover answers is an OpenRPC document of everything that is loaded, by the project's own schema of such documents.

const assert = require('assert');
const { installed, host, username, password, run } = require('./session');

const Ajv = installed('ajv');
const schemaOf = name => {
  const found = installed(name);
  return found.default || found;
};

async function ask(method) {
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method });
  const answer = await fetch(host, { method: 'POST', headers: { authorization, 'content-type': 'application/json' }, body });
  return (await answer.json()).result;
}

run(async () => {
  const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
  // The schemas name each other by address, with and without a slash at its end; they stand here under those names.
  const { $schema: _, $id: __, ...jsonSchema } = schemaOf('@json-schema-tools/meta-schema');
  const { $schema: ___, $id: ____, ...openRpc } = schemaOf('@open-rpc/meta-schema');
  for (const address of ['https://meta.json-schema.tools', 'https://meta.json-schema.tools/']) {
    ajv.addSchema({ ...jsonSchema, $id: address });
  }
  const validate = ajv.compile(openRpc);

  const document = await ask('rpc.discover');
  assert.ok(validate(document), JSON.stringify(validate.errors, null, 1));

  // It is about what `help` lists, no more and no less.
  const listed = (await ask('help')).split('\n').filter(line => line && !line.startsWith('==')).map(line => line.split(' ')[0]);
  const documented = document.methods.map(method => method.name);
  // A node behind the host describes its methods in words only.
  const known = process.env.OUTRIGGER_IN_FRONT ? listed.filter(name => documented.includes(name)) : listed;
  assert.deepStrictEqual(documented, known.sort());

  // The validator can refuse.
  const [method] = document.methods;
  assert.ok(!validate({ ...document, openrpc: '0.1' }));
  assert.ok(!validate({ ...document, methods: [{ ...method, params: [{ name: 'x' }] }] }));
  assert.ok(!validate({ ...document, methods: [{ ...method, result: { name: 'x', schema: { type: 'nonsense' } } }] }));
});
