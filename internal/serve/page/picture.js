// What fills a session's window: over time, and in the next request.
import { h } from "./vendor/preact.js";
import { useEffect, useRef } from "./vendor/hooks.js";
import { signal } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { get, at, short, dollars, clock } from "./api.js";
import { css, usePlot } from "./plot.js";
import { fail } from "./app.js";

const html = htm.bind(h);

const colours = { notice: "--warn", checkpoint: "--good", compaction: "--bad", undo: "--accent" };

// chart draws the tokens of each request, the thresholds of the window, and what
// else happened.
function chart(el, data, window_) {
  const xs = data.steps.map((s) => s.seq);
  let sum = 0;
  const cost = data.steps.map((s) => (sum += s.cost));
  const level = (p) => data.steps.map((s) => ((s.window || window_) * p) / 100 || null);
  const line = (label, colour, dash) => ({ label, stroke: css(colour), width: 1, dash, points: { show: false } });
  const marks = {
    hooks: {
      draw: (u) => {
        const ctx = u.ctx;
        ctx.save();
        for (const m of data.marks) {
          const x = Math.round(u.valToPos(m.seq, "x", true));
          if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
          ctx.strokeStyle = css(colours[m.kind]);
          ctx.lineWidth = m.kind === "compaction" ? 3 : 1;
          ctx.beginPath();
          ctx.moveTo(x, u.bbox.top);
          ctx.lineTo(x, u.bbox.top + u.bbox.height);
          ctx.stroke();
        }
        ctx.restore();
      },
    },
  };
  return new uPlot({
    width: el.clientWidth, height: Math.max(220, Math.min(360, innerHeight / 2)),
    scales: { x: { time: false }, $: { range: (u, min, max) => [0, max || 1] } },
    plugins: [marks],
    axes: [
      { stroke: css("--dim"), grid: { stroke: css("--line") }, label: "record", incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5] },
      { stroke: css("--dim"), grid: { stroke: css("--line") }, values: (u, v) => v.map(short), size: 60 },
      { scale: "$", side: 1, stroke: css("--dim"), grid: { show: false }, values: (u, v) => v.map((x) => dollars(x)), size: 70 },
    ],
    series: [
      { label: "record" },
      { label: "tokens", stroke: css("--accent"), fill: css("--fill"), width: 2, points: { show: data.steps.length < 200 } },
      line("50 %", "--dim", [4, 4]), line("75 %", "--warn", [4, 4]), line("90 %", "--bad", [4, 4]),
      { label: "cost", scale: "$", stroke: css("--good"), width: 1, points: { show: false } },
    ],
  }, [xs, data.steps.map((s) => s.tokens), level(50), level(75), level(90), cost], el);
}

function Plot({ u, window_ }) {
  const box = usePlot((el) => chart(el, u, window_), [u, window_]);
  return html`<div class="plot" ref=${box} role="img" aria-label="Tokens in the window after each answer; the table below has the same figures"></div>`;
}

function Parts({ ctx }) {
  const parts = [...ctx.breakdown.parts, { name: "other", tokens: ctx.breakdown.other || 0 }].filter((p) => p.tokens > 0).sort((a, b) => b.tokens - a.tokens);
  const all = ctx.budget.window || 1;
  return html`<section aria-label="The next request">
    <h3>The next request: ${short(ctx.budget.used)} of ${short(all)} tokens (${ctx.budget.percent} %)</h3>
    <table class="parts"><thead><tr><th scope="col">What</th><th scope="col">Tokens</th><th scope="col"><span class="hidden">Share</span></th></tr></thead>
      <tbody>${parts.map((p) => html`<tr><td>${p.name}</td><td class="number">${p.tokens}</td><td class="share"><meter min="0" max=${all} value=${p.tokens} aria-label=${p.name}></meter></td></tr>`)}</tbody></table>
    ${ctx.compactsFirst && html`<p class="hint">The earlier turns will be compacted before the next request.</p>`}
  </section>`;
}

export function Picture({ id, version }) {
  const usage = useRef(signal(null)).current;
  const ctx = useRef(signal(null)).current;
  useEffect(() => {
    get(at(id, "/usage")).then((u) => (usage.value = u), fail);
    get(at(id, "/context")).then((c) => (ctx.value = c), fail);
  }, [id, version]);
  const u = usage.value;
  if (!u) return html`<p role="status" class="pad">Counting…</p>`;
  return html`<div class="window" tabindex="0" role="region" aria-label="What fills the window">
    <h3>The window over time</h3>
    ${u.steps.length ? html`<${Plot} u=${u} window_=${ctx.value?.budget.window || 0} />
      <p class="legend"><span class="k-notice">notice</span> <span class="k-checkpoint">checkpoint</span> <span class="k-compaction">compaction</span> <span class="k-undo">undo</span></p>`
      : html`<p>No model has answered yet.</p>`}
    <p>${u.usage.calls} answers and summaries, ${short(u.usage.input + u.usage.cacheWrite)} tokens in, ${short(u.usage.cacheRead)} from the cache, ${short(u.usage.output)} out${u.usage.cost ? ", " + dollars(u.usage.cost) : ""}.</p>
    ${ctx.value && html`<${Parts} ctx=${ctx.value} />`}
    <${Figures} u=${u} id=${id} />
  </div>`;
}

const mostRows = 1000;

// Figures are the same as a table, made when it is opened.
function Figures({ u, id }) {
  const open = useRef(signal(false)).current;
  const all = open.value ? [...u.steps.map((s) => ({ ...s, kind: "answer", what: s.model })), ...u.marks.map((m) => ({ ...m, what: "" }))].sort((a, b) => a.seq - b.seq) : [];
  return html`<details onToggle=${(e) => (open.value = e.target.open)}><summary>As a table</summary>
    ${all.length > mostRows && html`<p class="hint">The latest ${mostRows} of ${all.length}.</p>`}
    <div class="wide" tabindex="0" role="region" aria-label="The window in figures"><table class="figures"><thead><tr><th scope="col">Record</th><th scope="col">Time</th><th scope="col">What</th><th scope="col">Tokens</th><th scope="col">Cost</th></tr></thead>
      <tbody>${all.slice(-mostRows).map((e) => html`<tr data-seq=${e.seq}><td><a href=${`#/s/${encodeURIComponent(id)}/${e.seq}`}>#${e.seq}</a></td><td>${clock(e.time)}</td><td>${e.kind}${e.percent ? ` ${e.percent} %` : ""} ${e.what}</td><td class="number">${e.tokens ?? e.tokensAfter ?? ""}</td><td class="number">${dollars(e.cost)}</td></tr>`)}</tbody></table></div>
  </details>`;
}
