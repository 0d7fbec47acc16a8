package skills

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/seed-009c0928/agent/core/lazy"
)

// SourceKind is the kind of a source.
type SourceKind string

// The kinds of sources.
const (
	SourceFolder    SourceKind = "folder"
	SourceArchive   SourceKind = "archive"    // a file or URL
	SourceGit       SourceKind = "git"        // a repository
	SourceWellKnown SourceKind = "well-known" // a site that publishes an index
)

// Origin is where skills come from.
type Origin struct {
	Kind     SourceKind
	Location string // absolute path or URL, without credentials
	Path     string // of the skill in the source, with slashes; empty = search
	Ref      string // branch, tag or commit of a repository; empty = its default
}

// String returns the source in the form that a user writes it.
func (o Origin) String() string {
	text := o.Location
	if o.Path != "" {
		text += "/" + o.Path
	}
	if o.Ref != "" {
		text += "@" + o.Ref
	}
	return text
}

var (
	shorthand = lazy.Regexp(`^([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9._-]+)((?:/[^@]+)?)(?:@(.+))?$`)
	scpLike   = lazy.Regexp(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^/].*$`)
	refName   = lazy.Regexp(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
)

// archiveEndings are the file name extensions of archives.
var archiveEndings = []string{".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".skill"}

// ParseSource parses a source: a folder or archive on disk (./x, /x, ~/x, or an
// existing path), OWNER/REPO[/PATH][@REF] on GitHub, the URL of a git repository
// followed by //PATH and @REF, the URL of an archive, or the URL of a site that
// publishes skills at the well-known path. Relative paths are relative to dir.
func ParseSource(text, dir, home string) (Origin, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Origin{}, errors.New("missing source: expected a folder, an archive, OWNER/REPO or a URL")
	case strings.HasPrefix(text, "-"):
		return Origin{}, fmt.Errorf("invalid source %q", text)
	case scpLike().MatchString(text):
		return gitSource(text)
	case strings.Contains(text, "://"):
		return urlSource(text)
	}
	file := text
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		file = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	info, err := os.Stat(file)
	switch {
	case err == nil && info.IsDir():
		return Origin{Kind: SourceFolder, Location: file}, nil
	case err == nil:
		return Origin{Kind: SourceArchive, Location: file}, nil
	case strings.HasPrefix(text, ".") || strings.HasPrefix(text, "~") || filepath.IsAbs(text):
		return Origin{}, fmt.Errorf("%s: %w", file, fs.ErrNotExist)
	}
	m := shorthand().FindStringSubmatch(text)
	if m == nil {
		return Origin{}, fmt.Errorf("invalid source %q: expected an existing folder or archive, OWNER/REPO[/PATH][@REF] or a URL", text)
	}
	o := Origin{Kind: SourceGit, Location: "https://github.com/" + m[1] + "/" + strings.TrimSuffix(m[2], ".git") + ".git", Ref: m[4]}
	return o.within(strings.Trim(m[3], "/"))
}

// within sets the path in a source and checks the ref.
func (o Origin) within(at string) (Origin, error) {
	if at = strings.TrimSuffix(at, "/SKILL.md"); at != "" && at != "SKILL.md" {
		clean := path.Clean(at)
		if clean == ".." || strings.HasPrefix(clean, "../") || path.IsAbs(clean) {
			return o, fmt.Errorf("the path %q leads out of the source", at)
		}
		o.Path = clean
	}
	if o.Ref != "" && (!refName().MatchString(o.Ref) || strings.Contains(o.Ref, "..")) {
		return o, fmt.Errorf("%q is not a valid branch, tag or commit", o.Ref)
	}
	return o, nil
}

// gitSource parses the URL of a repository: URL[//PATH][@REF].
func gitSource(text string) (Origin, error) {
	o := Origin{Kind: SourceGit}
	head, rest := "", text
	if i := strings.Index(text, "://"); i >= 0 {
		head, rest = text[:i+3], text[i+3:]
	} else if i := strings.IndexByte(text, ':'); i >= 0 { // git@host:path
		head, rest = text[:i+1], text[i+1:]
	}
	if i := strings.LastIndexByte(rest, '@'); i >= 0 && (head == "" || strings.Contains(rest[:i], "/")) {
		rest, o.Ref = rest[:i], rest[i+1:]
	}
	at := ""
	if i := strings.Index(rest, "//"); i >= 0 {
		rest, at = rest[:i], rest[i+2:]
	}
	o.Location = head + rest
	return o.within(at)
}

// urlSource parses a URL.
func urlSource(text string) (Origin, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Origin{}, fmt.Errorf("invalid URL %q: %w", text, err)
	}
	if _, secret := u.User.Password(); secret {
		return Origin{}, errors.New("the URL must not contain a password, which would be stored: use a git credential helper")
	}
	switch u.Scheme {
	case "git", "ssh", "file", "git+ssh", "git+https":
		return gitSource(strings.TrimPrefix(text, "git+"))
	case "http", "https":
	default:
		return Origin{}, fmt.Errorf("unsupported scheme %q: use https, ssh, git or file", u.Scheme+"://")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return Origin{}, errors.New("http is not encrypted: use https")
	}
	for _, ending := range archiveEndings {
		if strings.HasSuffix(strings.ToLower(u.Path), ending) {
			return Origin{Kind: SourceArchive, Location: text}, nil
		}
	}
	bare, _, _ := strings.Cut(u.Path, "@")
	parts := strings.Split(strings.Trim(bare, "/"), "/")
	if strings.Contains(bare, ".git") || strings.Contains(bare, "//") {
		return gitSource(text)
	}
	if forge(u.Hostname()) && len(parts) >= 2 {
		return forgeSource(u, parts)
	}
	return Origin{Kind: SourceWellKnown, Location: strings.TrimSuffix(text, "/")}, nil
}

func loopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// forge reports whether a host serves repositories at /OWNER/REPO.
func forge(host string) bool {
	return host == "github.com" || host == "gitlab.com" || host == "bitbucket.org" || host == "codeberg.org"
}

// forgeSource parses the URL of a repository, or of a folder in it, as shown in
// a browser: /OWNER/REPO/tree/REF/PATH.
func forgeSource(u *url.URL, parts []string) (Origin, error) {
	o := Origin{Kind: SourceGit, Location: u.Scheme + "://" + u.Host + "/" + parts[0] + "/" + parts[1] + ".git"}
	_, o.Ref, _ = strings.Cut(u.Path, "@")
	rest := parts[2:]
	if len(rest) > 0 && rest[0] == "-" {
		rest = rest[1:]
	}
	if len(rest) >= 2 && (rest[0] == "tree" || rest[0] == "blob") {
		o.Ref, rest = rest[1], rest[2:]
	}
	return o.within(strings.Join(rest, "/"))
}
