// Pictures that fit the page: its width, and its theme.
import { useEffect, useRef } from "./vendor/hooks.js";

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// usePlot draws what make returns for an element, again when of changes. The
// element's plot is for those who look into the page.
export function usePlot(make, of) {
  const box = useRef();
  useEffect(() => {
    const el = box.current;
    if (!el) return undefined;
    const draw = () => {
      el.plot?.destroy();
      el.plot = make(el);
    };
    draw();
    const wide = new ResizeObserver(() => el.plot.width !== el.clientWidth && draw());
    wide.observe(el);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", draw);
    return () => {
      wide.disconnect();
      dark.removeEventListener("change", draw);
      el.plot.destroy();
      el.plot = null;
    };
  }, of);
  return box;
}
