// Opens session files with pi's own SessionManager, and says what it makes of
// them: node pi.mjs PI FILE... The modules of other packages that reading a file
// does not need are left out.
import { register } from "node:module";
import { dirname } from "node:path";

const [pi, ...files] = process.argv.slice(2);
const source = (text) => "data:text/javascript," + encodeURIComponent(text);
const others = {
  uuid: source("export const v7 = () => crypto.randomUUID()"),
  "cross-spawn": source("export default {}"),
  "@earendil-works/pi-ai": source(["text", "transcript", "uuid"].map((m) => `export * from "file://${pi}/pi-ai/dist/utils/${m}.js";`).join("")),
};
register(source(`
const others = ${JSON.stringify(others)};
export const resolve = (name, context, next) => others[name] ? { url: others[name], shortCircuit: true } : next(name, context);
`));
const { SessionManager } = await import(`file://${pi}/dist/core/session-manager.js`);

const text = (content) => typeof content === "string" ? content : (content ?? []).filter((b) => b.type === "text").map((b) => b.text).join("\n");
for (const file of files) {
  const session = SessionManager.open(file);
  const messages = session.buildSessionContext().messages.map((m) => `${m.role} ${m.summary ?? text(m.content)}`);
  const listed = (await SessionManager.list(session.getCwd(), dirname(file))).some((s) => s.path === file);
  console.log(JSON.stringify({ messages, cwd: session.getCwd(), name: session.getSessionName() ?? "", listed }));
}
