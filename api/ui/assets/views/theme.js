import { html, useEffect, useState } from './html.js';

const key = 'berth.theme';
const order = ['auto', 'light', 'dark'];

function stored() {
  try {
    const value = localStorage.getItem(key);
    return order.includes(value) ? value : 'auto';
  } catch {
    return 'auto';
  }
}

// Theme switches between the system's colours, light and dark.
export function Theme() {
  const [theme, setTheme] = useState(stored);
  useEffect(() => {
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem(key, theme);
    } catch {
      // The choice lasts until the page is left.
    }
  }, [theme]);
  const next = order[(order.indexOf(theme) + 1) % order.length];
  return html`<button title=${`Colours: ${theme}`} aria-label=${`Colours: ${theme}. Switch to ${next}`} onClick=${() => setTheme(next)}>
    ${{ auto: '◐', light: '☀', dark: '☾' }[theme]}
  </button>`;
}
