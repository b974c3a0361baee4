package server

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/gofiber/fiber/v2"

	"berth/api/auth"
	"berth/api/server/edge"
	"berth/api/ui"
)

// uiPath is the address of the page, without the slash that its links need.
const uiPath = "/ui"

// operatorPage holds the handlers of the operator's page. They are public: the page has no
// content but its code, and reads everything else with the token of its user.
type operatorPage struct {
	settings auth.Settings
	load     func() (*ui.Page, error)
}

// newOperatorPage returns the handlers. They read and compress the page when somebody first
// opens it: on most hosts nobody does, and it would be a third of the time of a start.
func newOperatorPage(d Deps) operatorPage {
	return operatorPage{settings: d.Settings, load: sync.OnceValues(d.Page)}
}

// index answers with the HTML document. Its ETag is the version of the page.
func (s operatorPage) index(c *call) error {
	page, err := s.page()
	if err != nil {
		return err
	}
	if !bytes.HasSuffix(c.Request().URI().PathOriginal(), []byte("/")) {
		c.Set(fiber.HeaderLocation, uiPath[1:]+"/") // relative: a proxy may serve berth below a path
		return c.SendStatus(fiber.StatusPermanentRedirect)
	}
	c.Set(fiber.HeaderCacheControl, "no-cache")
	tag := strconv.Quote(page.Version())
	c.Set(fiber.HeaderETag, tag)
	c.Set(fiber.HeaderContentSecurityPolicy, ui.Policy)
	c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
	c.Set("Cross-Origin-Opener-Policy", "same-origin")
	if c.Get(fiber.HeaderIfNoneMatch) == tag {
		return c.SendStatus(fiber.StatusNotModified)
	}
	return send(c, page.Index())
}

// file answers with a file of a version, which never changes.
func (s operatorPage) file(c *call) error {
	page, err := s.page()
	if err != nil {
		return err
	}
	name := c.Params("file")
	if folder := c.Params("folder"); folder != "" {
		name = folder + "/" + name
	}
	file, found := page.File(c.Params("version"), name)
	if !found {
		return edge.ErrRoute
	}
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	return send(c, file)
}

// page returns the page, or an error if it is switched off.
func (s operatorPage) page() (*ui.Page, error) {
	if !s.settings.Current().UI.Enabled {
		return nil, edge.ErrRoute
	}
	return s.load()
}

// send answers with a file, compressed if the client accepts it.
func send(c *call, file ui.File) error {
	c.Set(fiber.HeaderContentType, file.Type)
	c.Vary(fiber.HeaderAcceptEncoding)
	if c.Get(fiber.HeaderAcceptEncoding) == "" || c.AcceptsEncodings("gzip", "identity") != "gzip" {
		return c.Send(file.Plain)
	}
	c.Set(fiber.HeaderContentEncoding, "gzip")
	return c.Send(file.Gzip)
}
