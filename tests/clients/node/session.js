// What the sessions in JavaScript share: where the clients are, where the host is, and how a session ends.

const path = require('path');

// The folder that the clients were installed into is the program's argument.
exports.installed = name => require(path.join(process.argv[2], 'node_modules', name));

const url = new URL(process.env.OUTRIGGER_URL);
exports.host = url.origin;
exports.username = process.env.OUTRIGGER_USER;
exports.password = process.env.OUTRIGGER_PASSWORD;

// Runs a session to its end, or to what is wrong.
exports.run = session =>
  session().catch(error => {
    console.error(error.stack || error);
    process.exit(1);
  });
