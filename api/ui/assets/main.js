// Starts the page.
import { html, render } from './views/html.js';
import { App } from './views/app.js';

const base = new URL('..', document.baseURI).href; // of the API: the page is at ui/
render(html`<${App} base=${base} />`, document.getElementById('app'));
