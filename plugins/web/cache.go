package web

import (
	"net/http"
	"slices"
	"sync"
)

// The cache stores a few pages for conditional requests.
const (
	cachePages = 16
	cacheBytes = 1 << 20 // per page
)

type cache struct {
	mu      sync.Mutex
	entries []cached // most recently used last
}

// cached is a page with its validators.
type cached struct {
	url, etag, modified string
	doc                 *document
}

// condition makes a request conditional and returns the cached page, nil if there
// is none.
func (c *cache) condition(req *http.Request) *document {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.entries, func(e cached) bool { return e.url == req.URL.String() })
	if i < 0 {
		return nil
	}
	e := c.entries[i]
	c.entries = append(slices.Delete(c.entries, i, i+1), e)
	if e.etag != "" {
		req.Header.Set("If-None-Match", e.etag)
	}
	if e.modified != "" {
		req.Header.Set("If-Modified-Since", e.modified)
	}
	return e.doc
}

// keep caches a page that has a validator and was not redirected.
func (c *cache) keep(req *http.Request, resp *http.Response, doc *document) {
	e := cached{req.URL.String(), resp.Header.Get("ETag"), resp.Header.Get("Last-Modified"), doc}
	if e.etag == "" && e.modified == "" || len(doc.data) > cacheBytes || resp.Request.URL.String() != e.url {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries = slices.DeleteFunc(c.entries, func(o cached) bool { return o.url == e.url })
	c.entries = append(c.entries, e)
	c.entries = slices.Delete(c.entries, 0, max(len(c.entries)-cachePages, 0))
}
