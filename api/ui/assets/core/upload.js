// Uploads one file with progress, which fetch does not report.
import { APIError, OfflineError, query, vendorType } from './api.js';

// upload sends a file to PUT …/files/content. onProgress receives the sent bytes. It
// returns {done, cancel}.
export function upload({ api, volume, path, file, onProgress, XMLHttpRequest = globalThis.XMLHttpRequest }) {
  const request = new XMLHttpRequest();
  const done = new Promise((resolve, reject) => {
    request.open('PUT', new URL(`volumes/${encodeURIComponent(volume)}/files/content${query({ path })}`, api.base).href);
    request.setRequestHeader('Accept', vendorType);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    if (api.token) request.setRequestHeader('Authorization', `Bearer ${api.token}`);
    request.upload.onprogress = (event) => onProgress(event.loaded);
    request.onerror = () => reject(new OfflineError());
    request.onabort = () => reject(new Error('The upload was cancelled'));
    request.onload = () => {
      if (request.status < 300) return resolve();
      let text = `The response has the status ${request.status}`;
      try {
        text = JSON.parse(request.responseText).error;
      } catch {
        // The status is all that is known.
      }
      reject(new APIError(request.status, request.getResponseHeader('X-Error-Code') ?? '', text));
    };
    request.send(file);
  });
  return { done, cancel: () => request.abort() };
}
