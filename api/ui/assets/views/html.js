// The one place where preact and htm meet.
import { h } from '../vendor/preact.js';
import htm from '../vendor/htm.js';

export const html = htm.bind(h);
export { render, createContext, Fragment } from '../vendor/preact.js';
export { useCallback, useContext, useEffect, useLayoutEffect, useMemo, useReducer, useRef, useState } from '../vendor/hooks.js';
