// What all sessions used, by day and model.
import { h } from "./vendor/preact.js";
import { useEffect, useRef } from "./vendor/hooks.js";
import { signal } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { get, query, short, dollars } from "./api.js";
import { css, usePlot } from "./plot.js";
import { fail } from "./app.js";

const html = htm.bind(h);
const since = signal("30d");
const tokens = (x) => x.input + x.cacheWrite + x.cacheRead + x.output;

// Days draws the tokens and the cost of each day.
function Days({ lines }) {
  const box = usePlot((el) => {
    const days = new Map();
    for (const x of lines) {
      const [n, cost] = days.get(x.day) || [0, 0];
      days.set(x.day, [n + tokens(x), cost + x.cost]);
    }
    const names = [...days.keys()].sort();
    const from0 = { range: (u, min, max) => [0, max || 1] };
    const axis = { stroke: css("--dim"), grid: { stroke: css("--line") } };
    return new uPlot({
      width: el.clientWidth, height: 180,
      scales: { x: { range: (u, min, max) => [min - 43200, max + 43200] }, y: from0, $: from0 },
      axes: [axis, { ...axis, values: (u, v) => v.map(short), size: 60 }, { ...axis, scale: "$", side: 1, grid: { show: false }, values: (u, v) => v.map(dollars), size: 70 }],
      series: [
        { label: "day", value: "{YYYY}-{MM}-{DD}" },
        { label: "tokens", stroke: css("--accent"), fill: css("--fill"), paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } },
        { label: "cost", scale: "$", stroke: css("--good"), width: 2 },
      ],
    }, [names.map((d) => new Date(d + "T12:00").getTime() / 1000), names.map((d) => days.get(d)[0]), names.map((d) => days.get(d)[1])], el);
  }, [lines]);
  return html`<div class="plot days" ref=${box} role="img" aria-label="Tokens and cost of each day; the table below has the same figures"></div>`;
}

export function Usage() {
  const lines = useRef(signal(null)).current;
  useEffect(() => {
    get("/v1/usage" + query({ since: since.value, by: "both" })).then((r) => (lines.value = r.usage), fail);
  }, [since.value]);
  const u = lines.value;
  const most = Math.max(1, ...(u || []).map(tokens));
  return html`<main class="usage" id="main" tabindex="-1">
    <a class="backlink" href="#/">All</a>
    <h2>Usage</h2>
    <label>Since <select value=${since.value} onChange=${(e) => (since.value = e.target.value)}>
      ${[["7d", "a week"], ["30d", "30 days"], ["365d", "a year"]].map(([v, t]) => html`<option value=${v}>${t}</option>`)}
    </select></label>
    ${!u && html`<p role="status">Counting…</p>`}
    ${u && !u.length && html`<p>No model has answered in this time.</p>`}
    ${u && u.length > 0 && html`<${Days} lines=${u} /><div class="wide" tabindex="0" role="region" aria-label="Usage by day and model"><table>
      <thead><tr>${["Day", "Model", "Calls", "Input", "Cached", "Output", "Cost", "Tokens"].map((t) => html`<th scope="col">${t}</th>`)}</tr></thead>
      <tbody>${u.map((x) => html`<tr><td>${x.day}</td><td>${x.model}</td><td class="number">${x.calls}</td><td class="number">${short(x.input + x.cacheWrite)}</td><td class="number">${short(x.cacheRead)}</td><td class="number">${short(x.output)}</td><td class="number">${dollars(x.cost)}</td>
        <td><meter min="0" max=${most} value=${tokens(x)} aria-label="tokens"></meter></td></tr>`)}</tbody>
    </table></div>`}
  </main>`;
}
