// What all sessions used, by day and model.
import { h } from "./vendor/preact.js";
import { useEffect, useRef } from "./vendor/hooks.js";
import { signal } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { get, query, short, dollars } from "./api.js";
import { fail } from "./app.js";

const html = htm.bind(h);
const since = signal("30d");

export function Usage() {
  const lines = useRef(signal(null)).current;
  useEffect(() => {
    get("/v1/usage" + query({ since: since.value, by: "both" })).then((r) => (lines.value = r.usage), fail);
  }, [since.value]);
  const u = lines.value;
  const most = Math.max(1, ...(u || []).map((x) => x.input + x.cacheWrite + x.cacheRead + x.output));
  return html`<main class="usage" id="main" tabindex="-1">
    <a class="backlink" href="#/">All</a>
    <h2>Usage</h2>
    <label>Since <select value=${since.value} onChange=${(e) => (since.value = e.target.value)}>
      ${[["7d", "a week"], ["30d", "30 days"], ["365d", "a year"]].map(([v, t]) => html`<option value=${v}>${t}</option>`)}
    </select></label>
    ${!u && html`<p role="status">Counting…</p>`}
    ${u && !u.length && html`<p>No model was asked.</p>`}
    ${u && u.length > 0 && html`<div class="wide" tabindex="0" role="region" aria-label="Usage by day and model"><table>
      <thead><tr>${["Day", "Model", "Calls", "Input", "Cached", "Output", "Cost", "Tokens"].map((t) => html`<th scope="col">${t}</th>`)}</tr></thead>
      <tbody>${u.map((x) => html`<tr><td>${x.day}</td><td>${x.model}</td><td class="number">${x.calls}</td><td class="number">${short(x.input + x.cacheWrite)}</td><td class="number">${short(x.cacheRead)}</td><td class="number">${short(x.output)}</td><td class="number">${dollars(x.cost)}</td>
        <td><meter min="0" max=${most} value=${x.input + x.cacheWrite + x.cacheRead + x.output} aria-label="tokens"></meter></td></tr>`)}</tbody>
    </table></div>`}
  </main>`;
}
