package client

import (
	"context"
	"net/http"
	"net/url"

	v1 "berth/api/v1"
)

// Files are the calls for the files of volumes. A volume is named by its UUID or the
// first 8 characters of it. Paths are relative to its root, which is the empty path
// where a folder is listed.
type Files struct{ c *Client }

func filesPath(volume, rest string) string { return volumePath(volume) + "/files" + rest }

// List returns the entries of a folder, folders first.
func (s Files) List(ctx context.Context, volume, folder string) ([]v1.FileEntry, error) {
	return list[[]v1.FileEntry](ctx, s.c, filesPath(volume, query("path", folder)), "files")
}

// ListWithTypes is List with the media type of each file.
func (s Files) ListWithTypes(ctx context.Context, volume, folder string) ([]v1.FileEntry, error) {
	return list[[]v1.FileEntry](ctx, s.c, filesPath(volume, query("path", folder, "mime", "true")), "files")
}

// Search returns the entries below a folder whose name contains text, or matches it
// if it is a pattern with * or ?.
func (s Files) Search(ctx context.Context, volume, folder, text string) (found v1.SearchResult, err error) {
	err = s.c.get(ctx, filesPath(volume, "/search"+query("query", text, "path", folder)), &found)
	return found, err
}

// SearchWithTypes is Search with the media type of each file.
func (s Files) SearchWithTypes(ctx context.Context, volume, folder, text string) (found v1.SearchResult, err error) {
	err = s.c.get(ctx, filesPath(volume, "/search"+query("query", text, "path", folder, "mime", "true")), &found)
	return found, err
}

// Mkdir creates a folder and its missing parents. It succeeds if the folder exists.
func (s Files) Mkdir(ctx context.Context, volume, path string) error {
	return s.c.Call(ctx, http.MethodPost, volumePath(volume)+"/folders", map[string]string{"path": path}, nil)
}

// Rename renames or moves a file or folder. An existing destination is an error with
// status 409.
func (s Files) Rename(ctx context.Context, volume, source, destination string) error {
	return s.c.Call(ctx, http.MethodPost, volumePath(volume)+"/rename",
		map[string]string{"source": source, "destination": destination}, nil)
}

// Copy copies a file or a folder with everything in it. It may take any time.
func (s Files) Copy(ctx context.Context, volume, source, destination string) error {
	return s.c.work(ctx, http.MethodPost, volumePath(volume)+"/copy",
		map[string]string{"source": source, "destination": destination}, nil)
}

// Compress creates an archive, and returns its path and size. It may take any time.
func (s Files) Compress(ctx context.Context, volume string, r v1.Compression) (a v1.Archive, err error) {
	body := map[string]any{"format": r.Format, "output_name": r.Output, "paths": r.Paths}
	if r.Folder != "" {
		body["path"] = r.Folder
	}
	var answer struct {
		Path    string `json:"archive_path"`
		Size    int64  `json:"size"`
		Skipped int    `json:"skipped"`
	}
	err = s.c.work(ctx, http.MethodPost, volumePath(volume)+"/compress", body, &answer)
	return v1.Archive{Path: answer.Path, Size: answer.Size, Skipped: answer.Skipped}, err
}

// Decompress extracts an archive. It may take any time.
func (s Files) Decompress(ctx context.Context, volume string, r v1.Decompression) (e v1.Extraction, err error) {
	body := map[string]string{"archive_path": r.Archive, "destination": r.Destination, "encoding": r.Encoding}
	var answer struct {
		Skipped []v1.Skipped `json:"skipped"`
		Total   int          `json:"skipped_total"`
	}
	err = s.c.work(ctx, http.MethodPost, volumePath(volume)+"/decompress", body, &answer)
	return v1.Extraction{Skipped: answer.Skipped, SkippedTotal: answer.Total}, err
}

// Chmod sets the permission bits of a file or folder, given in octal such as 0755.
func (s Files) Chmod(ctx context.Context, volume, path, mode string) error {
	return s.c.Call(ctx, http.MethodPost, volumePath(volume)+"/chmod", map[string]string{"path": path, "mode": mode}, nil)
}

// Delete deletes a file, or a folder with everything in it. It may take any time.
func (s Files) Delete(ctx context.Context, volume, path string) error {
	return s.c.work(ctx, http.MethodDelete, filesPath(volume, query("path", path)), nil, nil)
}

func contentPath(volume, path string) string {
	return filesPath(volume, "/content?path="+url.QueryEscape(path))
}

// Pull begins a download in the background and returns its id.
func (s Files) Pull(ctx context.Context, volume string, r v1.PullRequest) (id string, err error) {
	return made[string](ctx, s.c, volumePath(volume)+"/pull", r, "pull_id")
}

// Pulls returns the downloads into a volume, the newest first.
func (s Files) Pulls(ctx context.Context, volume string) ([]v1.PullView, error) {
	return list[[]v1.PullView](ctx, s.c, volumePath(volume)+"/pulls", "pulls")
}

// CancelPull cancels a download.
func (s Files) CancelPull(ctx context.Context, volume, id string) error {
	return s.c.Call(ctx, http.MethodDelete, volumePath(volume)+"/pulls/"+url.PathEscape(id), nil, nil)
}
