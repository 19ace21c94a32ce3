// The page: a list of sessions, and what is shown of one of them.
import { h, render } from "./vendor/preact.js";
import { useEffect, useRef } from "./vendor/hooks.js";
import { signal, computed } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { ask, get, at, query, ago, short } from "./api.js";
import { Session } from "./session.js";
import { Usage } from "./usage.js";

const html = htm.bind(h);

// The address says what is shown: #/, #/s/ID, #/s/ID/SEQ, #/usage, #/search/TEXT.
const route = signal(parse());
function parse() {
  const [kind = "", id = "", seq = ""] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
  return { kind, id, seq: Number(seq) || 0 };
}
addEventListener("hashchange", () => (route.value = parse()));
export const go = (...parts) => (location.hash = "#/" + parts.map(encodeURIComponent).join("/"));

const sessions = signal([]);
const next = signal("");
const loading = signal(false);
const filter = signal({ text: "", agent: "", channel: "", source: "", folder: "", trash: "" });
const problem = signal("");
const toast = signal(null); // {text, undo}
const help = signal(false);
const open = computed(() => (route.value.kind === "s" ? route.value.id : ""));

export function fail(err) {
  problem.value = err.message;
}

let asked = 0;
async function load(more) {
  if (more && (loading.value || !next.value)) return;
  const mine = ++asked;
  loading.value = true;
  try {
    const page = await get("/v1/sessions" + query({ ...filter.value, limit: 100, after: more ? next.value : "" }));
    if (mine !== asked) return;
    sessions.value = more ? [...sessions.value, ...page.sessions] : page.sessions;
    next.value = page.next;
  } catch (err) {
    fail(err);
  } finally {
    if (mine === asked) loading.value = false;
  }
}
export const refresh = () => load(false);

// changed puts a session that is known anew into the list.
export function changed(s) {
  sessions.value = sessions.value.map((x) => (x.id === s.id ? s : x));
}

async function begin() {
  try {
    const s = await ask("POST", "/v1/sessions", {});
    await refresh();
    go("s", s.id);
  } catch (err) {
    fail(err);
  }
}

export async function remove(s) {
  try {
    await ask("DELETE", at(s.id));
    sessions.value = sessions.value.filter((x) => x.id !== s.id);
    if (open.value === s.id) go("");
    toast.value = {
      text: `“${nameOf(s)}” is in the trash.`,
      undo: async () => {
        toast.value = null;
        try {
          await ask("POST", at(s.id, "/restore"));
          await refresh();
          go("s", s.id);
        } catch (err) {
          fail(err);
        }
      },
    };
  } catch (err) {
    fail(err);
  }
}

export const nameOf = (s) => s.title || s.key;

function Filters() {
  const set = (name) => (e) => {
    filter.value = { ...filter.value, [name]: e.target.value };
    refresh();
  };
  const f = filter.value;
  const field = (name, label) => html`<label>${label} <input value=${f[name]} onChange=${set(name)} /></label>`;
  return html`<details class="filters">
    <summary>Filters</summary>
    ${field("folder", "Folder")} ${field("agent", "Agent")} ${field("channel", "Channel")}
    <label>From <select value=${f.source} onChange=${set("source")}>
      <option value="">anywhere</option>
      ${["goclaw", "openclaw", "pi", "claude-code", "codex", "opencode", "gemini-cli", "crush", "claw0"].map((p) => html`<option value=${p}>${p}</option>`)}
    </select></label>
    <label>In <select value=${f.trash} onChange=${set("trash")}>
      <option value="">use</option><option value="true">the trash</option>
    </select></label>
  </details>`;
}

function Row({ s }) {
  const here = open.value === s.id;
  const restore = async () => {
    try {
      await ask("POST", at(s.id, "/restore"));
      await refresh();
    } catch (err) {
      fail(err);
    }
  };
  return html`<li class=${here ? "row here" : "row"}>
    <a href=${"#/s/" + encodeURIComponent(s.id)} aria-current=${here ? "page" : null}>
      <span class="name">${nameOf(s)}</span>
      <span class="about">${s.source !== "goclaw" ? s.source + " · " : ""}${s.folder ? s.folder.split("/").pop() + " · " : ""}${s.turns} ${s.turns === 1 ? "turn" : "turns"}${s.usedTokens ? " · " + short(s.usedTokens) : ""} · ${ago(s.updatedAt)}</span>
    </a>
    ${s.trashedAt && html`<button onClick=${restore}>Restore</button>`}
  </li>`;
}

function List() {
  const end = useRef();
  useEffect(() => {
    const seen = new IntersectionObserver((es) => es.some((e) => e.isIntersecting) && load(true), { rootMargin: "400px" });
    seen.observe(end.current);
    return () => seen.disconnect();
  }, []);
  const typed = useRef(0);
  const find = (e) => {
    clearTimeout(typed.current);
    const text = e.target.value;
    typed.current = setTimeout(() => {
      filter.value = { ...filter.value, text };
      refresh();
    }, 150);
  };
  const search = (e) => {
    e.preventDefault();
    const text = new FormData(e.target).get("q").trim();
    if (text) go("search", text);
  };
  return html`<nav class="list" aria-label="Sessions">
    <div class="top">
      <h1><a href="#/">goclaw</a></h1>
      <button class="new" onClick=${begin}>New</button>
      <a class="button" href="#/usage">Usage</a>
      <button aria-label="Keys" title="Keys" onClick=${() => (help.value = true)}>?</button>
    </div>
    <form role="search" onSubmit=${search}><input type="search" name="q" id="search" placeholder="Search everything said" aria-label="Search everything that was said" /></form>
    <input class="narrow" placeholder="Narrow the list" aria-label="Narrow the list" onInput=${find} />
    <${Filters} />
    <ul>${sessions.value.map((s) => html`<${Row} key=${s.id} s=${s} />`)}</ul>
    ${!sessions.value.length && !loading.value && html`<p class="none">No sessions here.</p>`}
    <div ref=${end} class="end" aria-hidden="true"></div>
  </nav>`;
}

function Search({ text }) {
  const found = useRef(signal(null)).current;
  useEffect(() => {
    found.value = null;
    get("/v1/search" + query({ q: text, limit: 30 })).then((r) => (found.value = r), fail);
  }, [text]);
  const r = found.value;
  return html`<main class="search" id="main" tabindex="-1">
    <h2>“${text}”</h2>
    ${!r && html`<p role="status">Searching…</p>`}
    ${r && !r.hits.length && html`<p role="status">Nothing was found.</p>`}
    ${r && r.near && html`<p class="hint">Nothing says this; these are only near.</p>`}
    <ol class="hits">${r && r.hits.map((hit) => html`<li>
      ${hit.session
        ? html`<a href=${`#/s/${encodeURIComponent(hit.session)}/${hit.seq}`}>${hit.title || hit.key}</a>`
        : html`<strong>${hit.file}:${hit.line}</strong>`}
      <span class="about">${[hit.role, hit.source, ago(hit.time)].filter(Boolean).join(" · ")}</span>
      <p>${hit.snippet}</p>
    </li>`)}</ol>
  </main>`;
}

const keys = [
  ["/", "search"], ["n", "new session"], ["j, k", "next, previous session"], ["m", "write a message"],
  ["Enter", "send; while an answer comes: queue"], ["Shift+Enter", "new line"], ["Esc", "stop the answer, leave a field"], ["?", "this list"],
];

function Help() {
  const box = useRef();
  useEffect(() => {
    if (help.value) box.current.showModal();
  }, [help.value]);
  if (!help.value) return null;
  return html`<dialog ref=${box} onClose=${() => (help.value = false)} aria-label="Keys">
    <h2>Keys</h2>
    <dl>${keys.map(([k, what]) => html`<dt><kbd>${k}</kbd></dt><dd>${what}</dd>`)}</dl>
    <button onClick=${() => box.current.close()}>Close</button>
  </dialog>`;
}

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName);
  if (typing) {
    if (e.key === "Escape") document.activeElement.blur();
    return;
  }
  const move = (by) => {
    const i = sessions.value.findIndex((s) => s.id === open.value);
    const s = sessions.value[Math.max(0, Math.min(sessions.value.length - 1, i + by))];
    if (s) go("s", s.id);
  };
  const act = {
    "/": () => document.getElementById("search").focus(),
    n: begin,
    j: () => move(1),
    k: () => move(-1),
    m: () => document.getElementById("say")?.focus(),
    "?": () => (help.value = true),
  }[e.key];
  if (act) {
    e.preventDefault();
    act();
  }
});

function App() {
  const r = route.value;
  useEffect(() => {
    refresh();
  }, []);
  return html`<div class=${r.kind ? "page inside" : "page"}>
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
    <${List} />
    ${r.kind === "s" ? html`<${Session} key=${r.id} id=${r.id} seq=${r.seq} />`
      : r.kind === "usage" ? html`<${Usage} />`
      : r.kind === "search" ? html`<${Search} key=${r.id} text=${r.id} />`
      : html`<main class="empty" id="main" tabindex="-1"><p>Choose a session, or begin a new one.</p></main>`}
    ${problem.value && html`<div class="toast bad" role="alert">${problem.value} <button onClick=${() => (problem.value = "")}>Close</button></div>`}
    ${toast.value && html`<div class="toast" role="status">${toast.value.text} <button onClick=${toast.value.undo}>Undo</button> <button onClick=${() => (toast.value = null)}>Close</button></div>`}
    <${Help} />
  </div>`;
}

render(html`<${App} />`, document.getElementById("app"));
