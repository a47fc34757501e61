'use strict';
// The page asks by JSON-RPC alone, as the user who signed in. It keeps the password in this variable and nowhere else.
let login = null;
let methods = new Map();
let timer = 0;
// How often the overview asks again, in milliseconds.
const PERIOD = 2000;

const at = (selector, from = document) => from.querySelector(selector);

function element(name, text = '', attributes = {}) {
  const made = document.createElement(name);
  made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

const nameOf = wallet => wallet || '(default)';
const pathOf = wallet => `/wallet/${encodeURIComponent(wallet)}`;

// The text of the host's whole answer.
async function post(method, params, path = '/') {
  const body = params === undefined ? {jsonrpc: '2.0', id: 1, method} : {jsonrpc: '2.0', id: 1, method, params: 0};
  // Arguments are JSON texts, so that no number passes through a float.
  const text = JSON.stringify(body).replace('"params":0', () => `"params":${params}`);
  const headers = {Authorization: login, 'Content-Type': 'application/json'};
  const response = await fetch(path, {method: 'POST', headers, body: text, credentials: 'omit', cache: 'no-store'});
  if (response.status === 401) throw new Error('The host refuses this user or password.');
  if (response.status === 403) throw new Error(`This user may not call ${method}.`);
  const answer = await response.text();
  if (!answer.startsWith('{')) throw new Error(answer || `The host answered with status ${response.status}.`);
  return answer;
}

async function ask(method, path) {
  const {error, result} = JSON.parse(await post(method, undefined, path));
  if (error) throw new Error(error.message);
  return result;
}

// A result, or null where the user may not call the method or it fails.
const may = async (method, path) => methods.has(method) ? ask(method, path).catch(() => null) : null;

function time(seconds) {
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1000).toFixed(1)} ms`;
  return seconds < 120 ? `${seconds.toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
}

function rows(table, all, cells) {
  const body = at(`${table} tbody`);
  const columns = at(`${table} thead tr`).children.length;
  body.replaceChildren(...all.map(one => {
    const row = element('tr');
    cells(one).forEach((cell, index) => {
      const [text, kind] = Array.isArray(cell) ? cell : [cell, ''];
      const made = element(index ? 'td' : 'th', text);
      if (!index) made.scope = 'row';
      made.className = kind;
      row.append(made);
    });
    return row;
  }));
  if (!all.length) {
    const row = element('tr');
    row.append(element('td', 'none', {colspan: columns, class: 'empty'}));
    body.append(row);
  }
}

const count = (number, isBad = false) => [String(number), number && isBad ? 'number bad' : 'number'];

function showPlugins(plugins) {
  rows('#plugins', plugins ?? [], plugin => [
    plugin.id,
    [plugin.state + (plugin.isolated ? ', isolated' : ''), plugin.state === 'running' ? 'good' : 'bad'],
    count(plugin.calls), count(plugin.errors),
    [plugin.answers ? time(plugin.time_us / plugin.answers / 1e6) : '', 'number'],
    count(plugin.waiting), count(plugin.crashes, true), count(plugin.denied?.count ?? 0, true),
  ]);
}

function progress(told) {
  return told?.total > 0 ? `${(told.done / told.total * 100).toFixed(1)} %` : '';
}

function rescan({scanning}) {
  if (!scanning) return '';
  const {duration, progress} = scanning;
  const left = progress > 0.001 ? `, about ${time(duration / progress - duration)} left` : '';
  return `${(progress * 100).toFixed(1)} %${left}`;
}

function showWallets(wallets) {
  rows('#wallets', wallets, ([name, wallet]) => wallet === null ? [nameOf(name), '', '', ''] : [
    nameOf(name), String(wallet.lastprocessedblock?.height ?? ''), rescan(wallet),
    wallet.unlocked_until === undefined ? (wallet.private_keys_enabled ? 'private' : 'none')
      : (wallet.unlocked_until ? ['unlocked', 'bad'] : 'locked'),
  ]);
}

function showNode(chain, network, host, asked) {
  const facts = [];
  if (chain) {
    facts.push(['Chain', chain.chain], ['Height', `${chain.blocks} of ${chain.headers}`], ['Tip', new Date(chain.time * 1000).toLocaleString()]);
    if (chain.initialblockdownload) facts.push(['Initial download', `${(chain.verificationprogress * 100).toFixed(2)} %`]);
  }
  if (network) facts.push(['Node', network.subversion], ['Peers', String(network.connections)]);
  facts.push(['Answer', time(asked / 1000)]);
  if (host) facts.push(['Connections', String(host.connections)], ['Waiting calls', String(host.waiting_calls)]);
  const node = host?.node;
  if (node) {
    facts.push(['Blocks behind', String(node.blocks_behind)]);
    if (node.replies) facts.push(['Node latency', time(node.time_us / node.replies / 1e6)]);
  }
  const warnings = [chain?.warnings, network?.warnings].flat().filter(Boolean);
  if (warnings.length) facts.push(['Warnings', [...new Set(warnings)].join(' ')]);
  at('#node').replaceChildren(...facts.map(([name, value]) => {
    const group = element('div');
    group.append(element('dt', name), element('dd', value));
    return group;
  }));
  at('#state').textContent = chain ? `${chain.chain}, height ${chain.blocks}` : 'Signed in';
}

async function refresh() {
  const wrong = at('#overview .error');
  try {
    const began = performance.now();
    const chain = await may('getblockchaininfo');
    const asked = performance.now() - began;
    const wanted = ['getnetworkinfo', 'gethostinfo', 'listplugins', 'listwallets', 'getrpcinfo'];
    const [network, host, plugins, names, calls] = await Promise.all(wanted.map(method => may(method)));
    const wallets = await Promise.all((names ?? []).map(async name => [name, await may('getwalletinfo', pathOf(name))]));
    if (!login) return;
    showNode(chain, network, host, asked);
    showPlugins(plugins);
    showWallets(wallets);
    rows('#calls', (calls?.active_commands ?? []).filter(({method}) => method !== 'getrpcinfo'), call => [
      call.method, [time(call.duration / 1e6), 'number'], progress(call.progress)]);
    if (names) showChoices(names);
    wrong.textContent = '';
  } catch (error) {
    wrong.textContent = error.message;
    at('#state').textContent = 'The host does not answer';
  }
  if (login) timer = setTimeout(refresh, PERIOD);
}

// The wallet that was chosen stays chosen when it is gone: the host then refuses the call, and no other wallet gets it.
function showChoices(names) {
  const select = at('#call select');
  const chosen = select.selectedOptions[0];
  const wanted = names.map(name => element('option', nameOf(name), {value: pathOf(name)}));
  if (select.selectedIndex > 0 && !wanted.some(option => option.value === chosen.value)) wanted.push(chosen.cloneNode(true));
  if ([...select.options].slice(1).map(option => option.value).join() === wanted.map(option => option.value).join()) return;
  select.replaceChildren(select.options[0], ...wanted);
  select.value = chosen.value;
}

// Passphrases and keys are not shown, neither while they are typed nor after the call.
const isSecret = ({name}) => /pass(phrase|word)|privkey/.test(name);

const typesOf = ({schema}) => [schema?.type ?? []].flat();

function showMethod() {
  const method = methods.get(at('#method').value);
  at('#help').textContent = method ? method.description ?? method.summary : '';
  at('#call fieldset').hidden = !method?.params.length;
  at('#arguments').replaceChildren(...(method?.params ?? []).map(param => {
    const types = typesOf(param);
    const label = element('label', param.name);
    const isLong = types.some(type => type === 'array' || type === 'object') || !types.length;
    let field = element(isLong ? 'textarea' : 'input', '', {name: param.name, autocomplete: 'off', spellcheck: 'false'});
    if (isSecret(param)) field.type = 'password';
    if (types.length === 1 && types[0] === 'boolean') {
      field = element('select', '', {name: param.name});
      field.append(...['', 'true', 'false'].map(value => element('option', value, {value})));
    }
    if (param.required) field.required = true;
    const kinds = types.length ? types.join(' or ') : 'any JSON';
    label.append(field, element('small', `${kinds}${param.required ? '' : ', optional'}. ${param.description ?? ''}`));
    return label;
  }));
  at('#returns').hidden = !method;
  at('#returns pre').textContent = method?.result?.description ?? '';
}

// The JSON of what was typed for an argument: text of a string is taken as it is, and everything else has to be JSON of its type.
function typed(param, text) {
  const types = typesOf(param);
  let kind = 'string';
  try {
    const value = JSON.parse(text);
    kind = Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value;
  } catch {
    if (/^\s*[[{"]/.test(text) && !(types.length === 1 && types[0] === 'string')) throw new Error(`${param.name}: this is no valid JSON`);
    if (types.length && !types.includes('string')) throw new Error(`${param.name}: ${types.join(' or ')} expected`);
    return JSON.stringify(text);
  }
  if (!types.length || types.includes(kind) && kind !== 'string') return text.trim();
  if (types.includes('string')) return JSON.stringify(text);
  if (kind === 'null' && !param.required) return 'null';
  throw new Error(`${param.name}: ${types.join(' or ')} expected`);
}

// The arguments as JSON texts, up to the last that was given.
function argumentsOf(method) {
  const given = method.params.map(param => {
    const text = at(`#arguments [name="${CSS.escape(param.name)}"]`).value;
    return text === '' ? null : typed(param, text);
  });
  while (given.length && given.at(-1) === null) given.pop();
  return given.map(json => json ?? 'null');
}

// JSON with line breaks; its numbers and strings stay as the host wrote them.
function indented(json) {
  let depth = 0;
  const line = () => `\n${'  '.repeat(depth)}`;
  return json.replace(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|\s+/g, part => {
    if (part === '[' || part === '{') { depth++; return part + line(); }
    if (part === ']' || part === '}') { depth--; return line() + part; }
    if (part === ',') return part + line();
    if (part === ':') return ': ';
    return /^\s/.test(part) ? '' : part;
  });
}

async function call(event) {
  event.preventDefault();
  const form = event.target;
  const wrong = at('.error', form);
  const button = at('button', form);
  wrong.textContent = '';
  try {
    const method = methods.get(at('#method').value);
    if (!method) throw new Error('There is no such method, or this user may not call it.');
    const params = argumentsOf(method);
    button.disabled = true;
    const answer = await post(method.name, `[${params.join(', ')}]`, at('#call select').value);
    const shown = params.map((json, index) => isSecret(method.params[index]) ? '***' : json);
    at('#asked').textContent = `${method.name} ${shown.join(', ')}`;
    const {error} = JSON.parse(answer);
    at('#answer').textContent = error ? `error ${error.code}: ${error.message}` : indented(/^\{"jsonrpc":"2.0","result":(.*),"id":1\}\s*$/s.exec(answer)?.[1] ?? answer);
    at('#answer').className = error ? 'bad' : '';
    at('#asked').hidden = at('#answer').hidden = false;
  } catch (error) {
    wrong.textContent = error.message;
  } finally {
    button.disabled = false;
  }
}

function view(name) {
  for (const id of ['overview', 'console']) at(`#${id}`).hidden = id !== name;
  for (const button of document.querySelectorAll('[data-view]')) {
    if (button.dataset.view === name) button.setAttribute('aria-current', 'page');
    else button.removeAttribute('aria-current');
  }
}

async function signIn(event) {
  event.preventDefault();
  const form = event.target;
  const bytes = new TextEncoder().encode(`${form.elements.user.value}:${form.elements.password.value}`);
  login = `Basic ${btoa(String.fromCharCode(...bytes))}`;
  try {
    const description = await ask('rpc.discover');
    methods = new Map(description.methods.map(method => [method.name, method]));
    at('#methods').replaceChildren(...[...methods.keys()].map(name => element('option', '', {value: name})));
    form.reset();
    at('.error', form).textContent = '';
    form.hidden = true;
    at('nav').hidden = false;
    view('overview');
    refresh();
  } catch (error) {
    login = null;
    at('.error', form).textContent = error.message;
  }
}

function leave() {
  clearTimeout(timer);
  login = null;
  location.reload();
}

at('#sign-in').addEventListener('submit', signIn);
at('#call').addEventListener('submit', call);
at('#method').addEventListener('input', showMethod);
at('#leave').addEventListener('click', leave);
for (const button of document.querySelectorAll('[data-view]')) button.addEventListener('click', () => view(button.dataset.view));
