// Starts the npm package telegram-test-api as it is, on a free port of loopback. The first line printed is its address.
// Usage: node test_api.cjs FOLDER   (where the package is installed: npm install --prefix FOLDER telegram-test-api@4.2.1)
const { TelegramServer } = require(require.resolve('telegram-test-api/lib/telegramServer.js', { paths: [process.argv[2]] }));
const net = require('net');
const probe = net.createServer().listen(0, '127.0.0.1', () => {
  const { port } = probe.address();
  probe.close(async () => {
    const server = new TelegramServer({ port, host: '127.0.0.1', storeTimeout: 3600 });
    await server.start();
    console.log(server.config.apiURL);
  });
});
process.stdin.on('end', () => process.exit(0)).resume();
