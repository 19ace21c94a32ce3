// Drives goclaw acp with the official TypeScript SDK, and prints what it saw.
// Arguments: the SDK's module, the folder to work in, the program.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdk, folder, program] = process.argv.slice(2);
const acp = await import(pathToFileURL(sdk));
const seen = { updates: [], questions: [] };
let answer = "once";

function start() {
  const child = spawn(program, ["acp"], { stdio: ["pipe", "pipe", "inherit"], cwd: folder });
  return { child, stream: acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)) };
}

function app() {
  return acp
    .client({ name: "test" })
    .onRequest(acp.methods.client.session.requestPermission, (ctx) => {
      seen.questions.push(ctx.params);
      return { outcome: answer === "cancelled" ? { outcome: "cancelled" } : { outcome: "selected", optionId: answer } };
    })
    .onNotification(acp.methods.client.session.update, (ctx) => {
      seen.updates.push(ctx.params);
      if (ctx.params.update.sessionUpdate === "agent_message_chunk" && ctx.params.update.content.text.includes("half")) {
        waiting?.();
      }
    });
}
let waiting;

const m = acp.methods.agent;
const text = (id) => seen.updates.filter((u) => u.sessionId === id && u.update.sessionUpdate === "agent_message_chunk").map((u) => u.update.content.text).join("");
const hello = { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} };
const out = {};

// First life: a session, a question with a diff, a stop.
let { child, stream } = start();
await app().connectWith(stream, async (ctx) => {
  out.initialized = await ctx.request(m.initialize, hello);
  const made = await ctx.request(m.session.new, { cwd: folder, mcpServers: [] });
  out.session = made.sessionId;
  out.modes = made.modes;
  const say = (t) => ctx.request(m.session.prompt, { sessionId: made.sessionId, prompt: [{ type: "text", text: t }] });
  out.first = await say("hello");
  out.firstText = text(made.sessionId);
  out.write = await say('call write_file {"path":"a.txt","content":"one\\ntwo\\n"}');
  out.edit = await say('call edit_file {"path":"a.txt","old_string":"two","new_string":"three"}');
  answer = "no";
  out.refused = await say('call write_file {"path":"b.txt","content":"x"}');
  answer = "cancelled";
  out.closed = await say('call write_file {"path":"c.txt","content":"x"}');
  await ctx.request(m.session.setMode, { sessionId: made.sessionId, modeId: "edits" });
  const before = seen.questions.length;
  await say('call write_file {"path":"d.txt","content":"x"}');
  out.askedInEdits = seen.questions.length - before;
  const half = new Promise((ok) => (waiting = ok));
  const slow = say("be slow");
  await half;
  await ctx.notify(m.session.cancel, { sessionId: made.sessionId });
  out.stopped = await slow;
  out.wrong = await ctx.request(m.session.load, { sessionId: "none", cwd: folder, mcpServers: [] }).catch((e) => String(e.message ?? e));
});
child.kill("SIGKILL");
out.questions = seen.questions;
out.kinds = [...new Set(seen.updates.map((u) => u.update.sessionUpdate))];
out.calls = seen.updates.filter((u) => u.update.sessionUpdate === "tool_call_update").map((u) => u.update);

// Second life: found again, and read from the beginning.
seen.updates = [];
({ child, stream } = start());
await app().connectWith(stream, async (ctx) => {
  await ctx.request(m.initialize, hello);
  out.list = await ctx.request(m.session.list, { cwd: folder });
  await ctx.request(m.session.load, { sessionId: out.session, cwd: folder, mcpServers: [] });
  out.history = seen.updates.map((u) => u.update);
  out.goesOn = await ctx.request(m.session.prompt, { sessionId: out.session, prompt: [{ type: "text", text: "again" }, { type: "resource_link", name: "a.txt", uri: "file:///tmp/a.txt" }] });
});
child.kill();
console.log(JSON.stringify(out));
process.exit(0);
