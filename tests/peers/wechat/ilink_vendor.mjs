// The vendor's own compiled client against a fake iLink: logs in, hears one message with a picture, types, answers with words and a file.
// node ilink_vendor.mjs PACKAGE_DIR URL  ->  one JSON line of what it saw
import { writeFileSync } from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [directory, url] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(path.join(directory, "dist/src", name)).href);

// Its login address is fixed in the code, so it is led to the fake here.
const real = globalThis.fetch;
globalThis.fetch = (address, options) => real(String(address).replace("https://ilinkai.weixin.qq.com", url), options);
const line = process.stdout.write.bind(process.stdout);
process.stdout.write = () => true; // it draws the code

const api = await load("api/api.js");
const login = await load("auth/login-qr.js");
const send = await load("messaging/send.js");
const upload = await load("cdn/upload.js");
const media = await load("cdn/pic-decrypt.js");

const started = await login.startWeixinLoginWithQr({ apiBaseUrl: url, botType: "3" });
const account = await login.waitForWeixinLogin({ sessionKey: started.sessionKey, apiBaseUrl: url, timeoutMs: 10000 });
const options = { baseUrl: account.baseUrl, token: account.botToken };
await api.notifyStart(options);

const batch = await api.getUpdates({ ...options, get_updates_buf: "" });
const [message] = batch.msgs;
const [words, picture] = message.item_list;
const opened = await media.downloadAndDecryptBuffer(
  picture.image_item.media.encrypt_query_param,
  Buffer.from(picture.image_item.aeskey, "hex").toString("base64"),
  `${url}/c2c`,
  "picture",
);

const person = message.from_user_id;
const { typing_ticket } = await api.getConfig({ ...options, ilinkUserId: person, contextToken: message.context_token });
for (const status of [1, 2]) await api.sendTyping({ ...options, body: { ilink_user_id: person, typing_ticket, status } });
const opts = { ...options, contextToken: message.context_token };
const sent = await send.sendMessageWeixin({ to: person, text: "你好 from the vendor", opts });

const file = path.join(path.dirname(directory), "report.txt");
writeFileSync(file, "a report");
const uploaded = await upload.uploadFileAttachmentToWeixin({ filePath: file, toUserId: person, opts, cdnBaseUrl: `${url}/c2c` });
await send.sendFileMessageWeixin({ to: person, text: "", fileName: "report.txt", uploaded, opts, filePath: file });
await api.notifyStop(options);

line(`${JSON.stringify({
  connected: account.connected,
  accountId: account.accountId,
  person,
  id: message.message_id,
  words: words.text_item.text,
  picture: opened.toString(),
  cursor: batch.get_updates_buf,
  sent: sent.serverMessageId,
})}\n`);
