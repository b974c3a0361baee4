import { html, useEffect, useRef, useState } from './html.js';
import { storages } from '../core/disks.js';
import { errorsOf } from '../core/form.js';
import { visible } from '../core/text.js';
import { usePage, useRead } from './context.js';

const none = { fields: {}, rest: '' };

// useForm keeps the values of a form, and the errors of its fields. names are the fields
// by the names of the API. send calls an action; it resolves to whether it succeeded, and
// moves the focus to the first field with an error.
export function useForm(initial, names) {
  const { refresh } = usePage();
  const [values, setValues] = useState(initial);
  const [errors, setErrors] = useState(none);
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState(0); // how often
  const form = useRef(null);

  useEffect(() => {
    if (refused) form.current?.querySelector('[aria-invalid=true]')?.focus();
  }, [refused]);

  const set = (name, value) => {
    setValues((old) => ({ ...old, [name]: value }));
    if (errors.fields[name]) setErrors({ fields: { ...errors.fields, [name]: '' }, rest: errors.rest });
  };
  const bind = (name) => ({
    name,
    value: values[name],
    error: errors.fields[name],
    onInput: (event) => set(name, event.target.value),
  });
  async function send(action) {
    setBusy(true);
    setErrors(none);
    try {
      await action();
      return true;
    } catch (error) {
      setErrors(errorsOf(error, names));
      setRefused((old) => old + 1);
      return false;
    } finally {
      setBusy(false);
      refresh();
    }
  }
  return { form, values, set, bind, send, busy, rest: errors.rest };
}

// Field is a labelled input with its help and its error. Its children are the options of
// a selection.
export function Field({ label, help, error, area, name, children, ...rest }) {
  const id = `field-${name}`;
  const described = [error && `${id}-error`, help && `${id}-help`].filter(Boolean).join(' ') || undefined;
  const input = { id, name, 'aria-invalid': error ? 'true' : undefined, 'aria-describedby': described, ...rest };
  return html`<div class="field">
    <label for=${id}>${label}</label>
    ${
      children
        ? html`<select ...${input}>${children}</select>`
        : area
          ? html`<textarea rows="3" spellcheck=${false} ...${input}></textarea>`
          : html`<input autocomplete="off" spellcheck=${false} ...${input} />`
    }
    ${error && html`<p class="error" id=${`${id}-error`}>${visible(error)}</p>`}
    ${help && html`<div class="quiet help" id=${`${id}-help`}>${help}</div>`}
  </div>`;
}

// Storage asks for the claim that a new volume is on, if the node has more than one.
export function Storage({ form }) {
  const { api } = usePage();
  const { data } = useRead(() => api.get('node'), [api]);
  const names = storages(data?.disk);
  return (
    names.length > 1 &&
    html`<${Field} label="Storage" ...${form.bind('storage')}>
      ${names.map((name) => html`<option key=${name} value=${name} selected=${name === form.values.storage}>${name ? `claim ${name}` : 'the default'}</option>`)}
    <//>`
  );
}

// Rest is an error of a form that is about none of its fields.
export const Rest = ({ text }) => html`<p class="error rest" role="alert">${visible(text)}</p>`;
