package web

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-009c0928/agent/sdk"
)

// AllowPrivateEnv is the environment variable with the addresses that may be
// fetched although they are not public: a comma-separated list of host:port as
// in the URL. It is for local servers and tests.
const AllowPrivateEnv = "AGENT_WEB_ALLOW_PRIVATE"

// timeout is the timeout of a call, which is longer than that of a fetch.
const timeout = 60 * time.Second

// Plugin returns the bundled plugin with the tool web_fetch, and web_search if there
// is a search engine.
func Plugin(version string, s Search) sdk.Plugin {
	p := sdk.Plugin{
		Name: "web", Version: version, Summary: "Fetches web pages as Markdown",
		// Permission for hosts is asked per call; private addresses are always
		// refused, except for the search engine.
		Manifest:   sdk.Manifest{Network: []string{"*"}, Env: []string{AllowPrivateEnv}},
		Extensions: []sdk.Extension{fetchTool(options{Version: version, AllowPrivate: allowed(os.Getenv(AllowPrivateEnv))})},
	}
	if s.Engine != "" {
		p.Summary = "Fetches web pages as Markdown, and searches the web"
		p.Manifest.Env = append(p.Manifest.Env, SearchEnv)
		p.Manifest.Secrets = []string{SearchKeyEnv}
		p.Extensions = append(p.Extensions, searchTool(version, s))
	}
	return p
}

// allowed parses the value of the variable.
func allowed(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// args are the arguments of web_fetch.
type args struct {
	URL string `json:"url"`
	Raw bool   `json:"raw,omitempty"`
}

const description = `Fetches a public web page, HTML as Markdown unless raw. A redirect to another host is reported, not followed.`

func fetchTool(o options) sdk.Extension {
	f := newFetcher(o)
	return sdk.Tool("web_fetch", description, func(ctx *sdk.Context, in args) (sdk.Result, error) {
		p, err := f.fetch(ctx, in.URL, in.Raw)
		if err != nil {
			return sdk.Result{}, coded(err)
		}
		return result(p), nil
	}, sdk.ReadOnly(), sdk.Connects("/url"), sdk.Timeout(timeout))
}

// result formats a page.
func result(p *page) sdk.Result {
	data := map[string]any{"url": p.URL, "type": p.Type, "title": p.Title, "truncated": p.Truncated}
	if p.Redirect != "" {
		data["redirect"] = p.Redirect
		return sdk.Result{Text: fmt.Sprintf("%s redirects to another host. To read it, fetch %s", p.URL, p.Redirect), Structured: data}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "URL: %s\n", p.URL)
	if p.Title != "" {
		fmt.Fprintf(&b, "Title: %s\n", p.Title)
	}
	if p.Truncated {
		b.WriteString("The page was truncated.\n")
	}
	b.WriteString("\n")
	if strings.TrimSpace(p.Text) == "" {
		b.WriteString("[The page has no text. It may require scripts, which are not run.]")
	}
	b.WriteString(p.Text)
	return sdk.Result{Text: b.String(), Structured: data}
}

// coded adds an error code.
func coded(err error) error {
	var refused *refusedError
	var status *statusError
	switch {
	case errors.As(err, &refused):
		return sdk.Errorf(sdk.Validation, "%w", err)
	case errors.As(err, &status) && (status.Status == 404 || status.Status == 410):
		return sdk.Errorf(sdk.NotFound, "%w", err)
	case errors.As(err, &status) && (status.Status == 429 || status.Status == 503):
		return sdk.Errorf(sdk.RateLimited, "%w", err)
	case errors.As(err, &status) && (status.Status == 401 || status.Status == 403):
		return sdk.Errorf(sdk.Permission, "%w", err)
	}
	return sdk.Errorf(sdk.IO, "%w", err)
}
