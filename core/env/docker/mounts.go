package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/env"
)

// mount is a directory of this machine in the container.
type mount struct {
	Type, Source, Destination string
}

// look prints what shows that a container runs on this kernel, as which user,
// and which of its paths are mount points.
const look = `cat /proc/sys/kernel/random/boot_id && id -u && cat /proc/self/uid_map && echo && cat /proc/self/mountinfo`

// findMounts finds the directories whose files are the same on this machine. None
// are found if the engine runs on another one.
func (e *Env) findMounts(ctx context.Context, args []string) error {
	list, err := e.cli.Output(ctx, "inspect", "--type=container", "--format={{json .Mounts}}", e.container)
	if err != nil {
		return err
	}
	var all []mount
	if err := json.Unmarshal([]byte(list), &all); err != nil {
		return fmt.Errorf("docker inspect: %w", err)
	}
	all = slices.DeleteFunc(all, func(m mount) bool { return m.Type != "bind" || path.Clean(m.Destination) != m.Destination })
	if len(all) == 0 {
		return nil
	}
	seen, err := e.cli.Output(ctx, slices.Concat(args, []string{e.container, "sh", "-c", look})...)
	if err != nil {
		return err
	}
	head, points, _ := strings.Cut(seen, "\n\n")
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || !sameUser(head, string(boot)) {
		return nil // another machine, or one whose files it may not read
	}
	for _, m := range all {
		if !covered(points, m.Destination) && e.sameDirectory(ctx, args, m) {
			e.mounts = append(e.mounts, m)
		}
	}
	if len(e.mounts) > 0 {
		e.local, err = env.NewLocal(env.LocalOptions{Dir: e.mounts[0].Source})
	}
	return err
}

// sameUser reports whether a program with that boot ID and user runs on this
// kernel, as the user of this process.
func sameUser(head, boot string) bool {
	lines := strings.Split(strings.TrimSpace(head), "\n")
	if len(lines) < 3 || lines[0] != strings.TrimSpace(boot) {
		return false
	}
	inside, err := strconv.ParseInt(lines[1], 10, 64)
	if err != nil {
		return false
	}
	for _, line := range lines[2:] {
		var first, outside, n int64
		if _, err := fmt.Sscan(line, &first, &outside, &n); err == nil && first <= inside && inside < first+n {
			return inside-first+outside == int64(os.Getuid())
		}
	}
	return false
}

// covered reports whether something is mounted below a directory.
func covered(mountinfo, dir string) bool {
	for line := range strings.Lines(mountinfo) {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(unescape(fields[4]), strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// unescape replaces the escapes of mountinfo.
func unescape(field string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(field)
}

// sameDirectory reports whether both ends of a mount are the same directory.
func (e *Env) sameDirectory(ctx context.Context, args []string, m mount) bool {
	there, err := e.cli.Output(ctx, slices.Concat(args, []string{e.container, "stat", "-L", "-c", "%d %i", m.Destination})...)
	if err != nil {
		return false
	}
	here, err := identity(m.Source)
	return err == nil && strings.TrimSpace(there) == here
}

// here returns the path on this machine of a clean absolute path in a mount.
func (e *Env) here(name string) (string, bool) {
	if e.local == nil || path.Clean(name) != name {
		return "", false
	}
	for _, m := range e.mounts {
		if rel, ok := strings.CutPrefix(name, m.Destination); ok && (rel == "" || rel[0] == '/') {
			return m.Source + rel, true
		}
	}
	return "", false
}

// Resolve implements [core.Environment].
func (e *Env) Resolve(ctx context.Context, name string) (core.Resolved, error) {
	full := name
	if !path.IsAbs(name) {
		full = e.Info().Dir + "/" + cmp.Or(name, ".")
	}
	// Elements that are ".." depend on links before them.
	if !strings.HasPrefix(name, "~") && !slices.Contains(strings.Split(name, "/"), "..") {
		full = path.Clean(full)
		if here, ok := e.here(full); ok {
			if _, err := e.local.ExactFiles().Stat(ctx, here); err == nil { // no link on the way
				return core.Resolved{Path: full, Inside: slices.ContainsFunc(e.Info().Roots, func(root string) bool {
					return full == root || strings.HasPrefix(full, strings.TrimSuffix(root, "/")+"/")
				})}, nil
			}
		}
	}
	return e.Env.Resolve(ctx, name)
}

// ExactFiles implements [core.ExactFiler]. What is in a mount is read on this
// machine.
func (e *Env) ExactFiles() core.FS { return mountedFS{e.Env.ExactFiles(), e} }

type mountedFS struct {
	core.FS
	env *Env
}

// Open implements [core.FS]. Whatever fails here, such as a link, is left to the
// container.
func (f mountedFS) Open(ctx context.Context, name string) (core.File, error) {
	if here, ok := f.env.here(name); ok {
		if file, err := f.env.local.ExactFiles().Open(ctx, here); err == nil {
			return file, nil
		}
	}
	return f.FS.Open(ctx, name)
}

// Stat implements [core.FS].
func (f mountedFS) Stat(ctx context.Context, name string) (fs.FileInfo, error) {
	if here, ok := f.env.here(name); ok {
		if info, err := f.env.local.ExactFiles().Stat(ctx, here); err == nil {
			return info, nil
		}
	}
	return f.FS.Stat(ctx, name)
}

// ReadDir implements [core.FS].
func (f mountedFS) ReadDir(ctx context.Context, name string) ([]fs.DirEntry, error) {
	if here, ok := f.env.here(name); ok {
		if entries, err := f.env.local.ExactFiles().ReadDir(ctx, here); err == nil {
			return entries, nil
		}
	}
	return f.FS.ReadDir(ctx, name)
}

// Batch implements [core.Batcher].
func (f mountedFS) Batch(ctx context.Context) (core.Batch, error) {
	return &mountedBatch{ctx: ctx, files: f}, nil
}

// mountedBatch reads mounts on this machine, and the rest by a batch of the
// container.
type mountedBatch struct {
	ctx   context.Context
	files mountedFS
	rest  core.Batch // nil until it is needed
}

// outside returns the batch for paths that are not all in mounts, or nil.
func (b *mountedBatch) outside(paths []string) (core.Batch, error) {
	if !slices.ContainsFunc(paths, func(p string) bool { _, ok := b.files.env.here(p); return !ok }) {
		return nil, nil
	}
	var err error
	if b.rest == nil {
		b.rest, err = b.files.FS.(core.Batcher).Batch(b.ctx)
	}
	return b.rest, err
}

// ReadDirs implements [core.Batch].
func (b *mountedBatch) ReadDirs(paths []string) ([]core.BatchResult, error) {
	if rest, err := b.outside(paths); rest != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return rest.ReadDirs(paths)
	}
	results := make([]core.BatchResult, len(paths))
	for i, name := range paths {
		results[i].Entries, results[i].Err = b.files.ReadDir(b.ctx, name)
	}
	return results, b.ctx.Err()
}

// ReadFiles implements [core.Batch].
func (b *mountedBatch) ReadFiles(paths []string, limit int, visit func(i int, data []byte, err error)) error {
	if rest, err := b.outside(paths); rest != nil || err != nil {
		if err != nil {
			return err
		}
		return rest.ReadFiles(paths, limit, visit)
	}
	for i, name := range paths {
		data, err := b.read(name, limit)
		visit(i, data, err)
	}
	return b.ctx.Err()
}

func (b *mountedBatch) read(name string, limit int) ([]byte, error) {
	f, err := b.files.Open(b.ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)))
}

// Close implements [core.Batch].
func (b *mountedBatch) Close() error {
	if b.rest == nil {
		return nil
	}
	return b.rest.Close()
}
