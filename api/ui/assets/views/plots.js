import { html, useEffect, useRef } from './html.js';
import { bytes, clock, percent } from '../core/format.js';
import uPlot from '../vendor/uplot.js';

const perSecond = (n) => (n === null || n === undefined ? '–' : `${bytes(n)}/s`);

const plots = [
  { title: 'CPU', format: percent, least: 5, lines: [['', 'cpu']] },
  { title: 'Memory', format: bytes, least: 2 ** 20, binary: true, lines: [['', 'memory']] },
  { title: 'Network', format: perSecond, least: 2 ** 10, binary: true, lines: [['received', 'rx'], ['sent', 'tx']] },
  { title: 'Disk', format: perSecond, least: 2 ** 10, binary: true, lines: [['read', 'read'], ['written', 'write']] },
]; // prettier-ignore

// increments are the steps of an axis of bytes.
const increments = Array.from({ length: 48 }, (_, i) => 2 ** i);

// colors reads the colours of the page, which differ in the dark.
function colors(element) {
  const read = (name) => {
    element.style.color = `var(${name})`;
    return getComputedStyle(element).color;
  };
  return { axis: read('--quiet'), grid: read('--line'), series: [read('--accent'), read('--second')] };
}

// timeRange shows a minute at least.
function timeRange({ data: [times] }) {
  const end = times.at(-1) ?? Date.now() / 1000;
  return [Math.min(times[0] ?? end, end - 60), end];
}

function optionsOf({ lines, format, least, binary }, element) {
  const color = colors(element);
  const axis = {
    stroke: color.axis,
    grid: { stroke: color.grid, width: 1 },
    ticks: { stroke: color.grid, width: 1 },
    font: '11px system-ui',
  };
  return {
    width: element.clientWidth,
    height: 150,
    legend: { show: false },
    cursor: { y: false },
    scales: { x: { range: timeRange }, y: { range: (_, low, high) => [0, Math.max(high ?? 0, least) * 1.1] } },
    axes: [
      { ...axis, size: 30, space: 90, values: (_, list) => list.map((seconds) => clock(seconds * 1000)) },
      { ...axis, size: 78, values: (_, list) => list.map(format), ...(binary && { incrs: increments }) },
    ],
    series: [
      {},
      ...lines.map(([label], i) => ({
        label,
        stroke: color.series[i],
        width: 1.5,
        fill: i === 0 ? color.series[0].replace('rgb(', 'rgba(').replace(')', ', 0.13)') : undefined,
        points: { show: false },
      })),
    ],
  };
}

function Plot({ plot, live }) {
  const box = useRef(null);
  const now = useRef(null);
  useEffect(() => {
    const element = box.current;
    const data = () => [live.series.data.time, ...plot.lines.map(([, name]) => live.series.data[name])];
    let chart;
    const make = () => {
      chart?.destroy();
      chart = new uPlot(optionsOf(plot, element), data(), element);
    };
    make();
    const text = () => {
      now.current.textContent = plot.lines
        .map(([label, name]) => `${label} ${plot.format(live.series.data[name].at(-1))}`.trim())
        .join(' · ');
    };
    text();
    const changed = (event) => {
      if (event !== 'stats' || !now.current) return; // null: the plots were left in this frame
      chart.setData(data());
      text();
    };
    live.listeners.add(changed);
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: 150 }));
    observer.observe(element);
    const scheme = matchMedia('(prefers-color-scheme: dark)');
    scheme.addEventListener('change', make);
    const theme = new MutationObserver(make);
    theme.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => {
      live.listeners.delete(changed);
      observer.disconnect();
      scheme.removeEventListener('change', make);
      theme.disconnect();
      chart.destroy();
    };
  }, [live]);
  return html`<figure class="plot">
    <figcaption><b>${plot.title}</b> <span class="quiet" ref=${now}></span></figcaption>
    <div ref=${box} role="img" aria-label=${`${plot.title} of the last ten minutes`}></div>
  </figure>`;
}

// Plots show the resource usage since the drawer was opened, of ten minutes at most.
export function Plots({ container, live }) {
  return html`<div class="plots">
    ${container.state !== 'running' && container.state !== 'starting' && html`<p class="quiet">The container does not run: nothing is measured.</p>`}
    ${plots.map((plot) => html`<${Plot} key=${plot.title} plot=${plot} live=${live} />`)}
  </div>`;
}
