// Records as people read them.
import { h } from "./vendor/preact.js";
import htm from "./vendor/htm.js";
import { trusted, clean, short, clock } from "./api.js";

const html = htm.bind(h);

// Diff shows a diff with its lines coloured.
export function Diff({ text }) {
  return html`<pre class="diff">${text.split("\n").map((line) => html`<span class=${line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : line.startsWith("@@") ? "at" : ""}>${line + "\n"}</span>`)}</pre>`;
}

const headLines = 8;

function Result({ r }) {
  const lines = r.text.split("\n");
  const more = lines.length - headLines;
  return html`<div class=${r.isError ? "result failed" : "result"}>
    ${r.name === "edit_file" && /^@@ /m.test(r.text) ? html`<${Diff} text=${r.text} />`
      : more > 1 || r.cut ? html`<details><summary><pre>${lines.slice(0, headLines).join("\n")}</pre><span class="more">… ${[more > 1 && `${more} more lines`, r.cut && `${r.cut} bytes not shown here`].filter(Boolean).join(", and ")}</span></summary><pre>${lines.slice(headLines).join("\n")}</pre></details>`
      : html`<pre>${r.text || "(no output)"}</pre>`}
  </div>`;
}

function Call({ c }) {
  const text = c.name === "write_file" && typeof c.input?.content === "string" ? c.input.content : null;
  return html`<details class="call" open=${text !== null && text.length < 2000}><summary><code>${c.line}</code></summary>
    ${text !== null ? html`<${Diff} text=${text.split("\n").map((l) => "+" + l).join("\n")} />` : html`<pre>${typeof c.input === "string" ? c.input : clean(JSON.stringify(c.input, null, 2))}</pre>`}
  </details>`;
}

const names = {
  user: "You", assistant: "Assistant", tool: "Result", compaction: "Compacted", checkpoint: "Checkpoint", notice: "Notice to the model", undo: "Compaction undone",
  model: "Model", title: "Title", shell: "Command", custom: "From a program", reset: "Started over", branch: "Returned from a branch",
};
const small = ["notice", "checkpoint", "model", "title", "undo", "compaction"];

const became = (it) => (it.tokens && it.tokensAfter ? `${short(it.tokens)} tokens became ${short(it.tokensAfter)}` : "");

function Body({ it }) {
  return html`
    ${it.thinking && html`<details class="thinking"><summary>Thinking</summary><div class="text plain">${it.thinking}</div></details>`}
    ${it.html && html`<div class="text" dangerouslySetInnerHTML=${trusted(it.html)}></div>`}
    ${it.text && html`<div class="text plain">${it.text}</div>`}
    ${it.cut > 0 && html`<p class="more">${it.cut} more bytes are not shown here.</p>`}
    ${it.images?.map((img, i) => html`<a class="picture" href=${img.path} target="_blank"><img loading="lazy" alt=${`Picture ${i + 1} in record ${it.seq}`} src=${img.path} /></a>`)}
    ${it.calls?.map((c) => html`<${Call} c=${c} />`)}
    ${it.results?.map((r) => html`<${Result} r=${r} />`)}
    ${it.error && html`<p class="error">${it.error}</p>`}`;
}

export function Item({ it, m, found }) {
  const covered = it.seq < (m.compaction.value?.first || 0) && !it.dead;
  const name = (it.kind === "assistant" && it.model) || names[it.kind];
  const classes = ["item", it.kind, it.dead && "dead", covered && "covered", found && "found"].filter(Boolean).join(" ");
  if (small.includes(it.kind)) {
    const about = it.kind === "model" || it.kind === "title" ? ": " + it.text : it.percent ? ` (${it.percent} %)` : it.kind === "compaction" && became(it) ? ": " + became(it) : "";
    return html`<article class=${classes} id=${"r" + it.seq} aria-label=${`${name}, record ${it.seq}`}><details><summary>${name}${about}</summary><${Body} it=${it} /></details></article>`;
  }
  return html`<article class=${classes} id=${"r" + it.seq} aria-label=${`${name}, record ${it.seq}`}>
    <header><span class="who">${name}</span> <time datetime=${it.time}>${clock(it.time)}</time> <a class="seq" href=${`#/s/${encodeURIComponent(m.id)}/${it.seq}`}>#${it.seq}</a>
      ${it.dead && html`<span class="tag">another branch</span>`}${covered && html`<span class="tag">no longer sent</span>`}
      ${it.kind === "user" && !it.dead && html`<button class="quiet" onClick=${() => m.back(it.seq)} title="Go back to before this message, and change it" aria-label=${`Edit, record ${it.seq}`}>Edit</button>`}
      ${(it.kind === "user" || it.kind === "assistant") && html`<button class="quiet" onClick=${() => m.fork(it.seq)} aria-label=${`Fork here, record ${it.seq}`}>Fork here</button>`}
    </header>
    <${Body} it=${it} />
  </article>`;
}

// Compacted stands for the records that a compaction covers, before the first that is sent.
export function Compacted({ m }) {
  const { first, summary } = m.compaction.value;
  const on = m.opened.value;
  return html`<article class="item compacted" id="compacted" aria-label="Compacted">
    <p><strong>Records 1 to ${first - 1} were compacted</strong>${became(summary) && ": " + became(summary)}. The model reads this summary of them, made at <a href=${`#/s/${encodeURIComponent(m.id)}/${summary.seq}`}>#${summary.seq}</a>.</p>
    <details class="summary"><summary>The summary</summary><${Body} it=${summary} /></details>
    <button aria-expanded=${on} onClick=${() => m.open(!on)}>${on ? "Hide what it covers" : "Show what it covers"}</button>
    <button onClick=${() => m.compact({ undo: true })}>Undo</button>
  </article>`;
}
