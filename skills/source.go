package skills

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// SourceKind says what a source is.
type SourceKind string

// The kinds of sources.
const (
	SourceFolder    SourceKind = "folder"
	SourceArchive   SourceKind = "archive"    // a file, or an address of one
	SourceGit       SourceKind = "git"        // a repository
	SourceWellKnown SourceKind = "well-known" // a site that lists its skills
)

// Origin is where skills come from.
type Origin struct {
	Kind     SourceKind
	Location string // absolute path or URL, without credentials
	Path     string // of the skill in it, with slashes; empty to look for skills
	Ref      string // branch, tag or commit of a repository; empty = its default
}

// String is the source as a person writes it.
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
	shorthand = lazily(`^([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9._-]+)((?:/[^@]+)?)(?:@(.+))?$`)
	scpLike   = lazily(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^/].*$`)
	refName   = lazily(`^[A-Za-z0-9][A-Za-z0-9._/+-]*$`)
)

// archiveEndings are the ends of names of archives.
var archiveEndings = []string{".zip", ".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".skill"}

// ParseSource reads a source: a folder or archive on disk (./x, /x, ~/x, or a
// path that is there), OWNER/REPO[/PATH][@REF] of GitHub, the address of a git
// repository with //PATH and @REF behind it, the address of an archive, or that
// of a site that publishes skills at a well-known place. Relative paths are
// taken against dir.
func ParseSource(text, dir, home string) (Origin, error) {
	text = strings.TrimSpace(text)
	switch {
	case text == "":
		return Origin{}, errors.New("there is no source: name a folder, an archive, OWNER/REPO or an address")
	case strings.HasPrefix(text, "-"):
		return Origin{}, fmt.Errorf("%q is no source", text)
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
		return Origin{}, fmt.Errorf("there is nothing at %s", file)
	}
	m := shorthand().FindStringSubmatch(text)
	if m == nil {
		return Origin{}, fmt.Errorf("%q is no folder or archive that is there, no OWNER/REPO[/PATH][@REF] and no address", text)
	}
	o := Origin{Kind: SourceGit, Location: "https://github.com/" + m[1] + "/" + strings.TrimSuffix(m[2], ".git") + ".git", Ref: m[4]}
	return o.within(strings.Trim(m[3], "/"))
}

// within sets the path in a source.
func (o Origin) within(at string) (Origin, error) {
	if at = strings.TrimSuffix(at, "/SKILL.md"); at != "" && at != "SKILL.md" {
		clean := path.Clean(at)
		if clean == ".." || strings.HasPrefix(clean, "../") || path.IsAbs(clean) {
			return o, fmt.Errorf("the path %q leads out of the source", at)
		}
		o.Path = clean
	}
	if o.Ref != "" && (!refName().MatchString(o.Ref) || strings.Contains(o.Ref, "..")) {
		return o, fmt.Errorf("%q is no name of a branch, tag or commit", o.Ref)
	}
	return o, nil
}

// gitSource reads the address of a repository: ADDRESS[//PATH][@REF].
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

// urlSource reads an address.
func urlSource(text string) (Origin, error) {
	u, err := url.Parse(text)
	if err != nil {
		return Origin{}, fmt.Errorf("%q is no address: %w", text, err)
	}
	if _, secret := u.User.Password(); secret {
		return Origin{}, errors.New("an address must not hold a password: it would be written down; use git's credential helper")
	}
	switch u.Scheme {
	case "git", "ssh", "file", "git+ssh", "git+https":
		return gitSource(strings.TrimPrefix(text, "git+"))
	case "http", "https":
	default:
		return Origin{}, fmt.Errorf("%q: use https, ssh, git or file", u.Scheme+"://")
	}
	if u.Scheme == "http" && !loopback(u.Hostname()) {
		return Origin{}, errors.New("http is not protected: use https")
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

// forge reports whether a host keeps repositories at /OWNER/REPO.
func forge(host string) bool {
	return host == "github.com" || host == "gitlab.com" || host == "bitbucket.org" || host == "codeberg.org"
}

// forgeSource reads the address of a repository, or of a folder in it, as a
// browser shows it: /OWNER/REPO/tree/REF/PATH.
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
