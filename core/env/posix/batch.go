package posix

import (
	"context"
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-009c0928/agent/core"
)

//go:embed scripts/batch.sh
var batchScript string

// chunk is the maximum number of paths of a request.
const chunk = 200

// batch reads directories and files by one script that runs until Close.
type batch struct {
	*dialog
	files files
	ctx   context.Context // of Batch
	token string
}

var (
	_ core.Batcher = files{}
	_ core.Batch   = (*batch)(nil)
)

// Batch implements [core.Batcher].
func (f files) Batch(ctx context.Context) (core.Batch, error) {
	token := rand.Text()
	d, err := f.env.dialog(ctx, batchScript, token)
	if err != nil {
		return nil, err
	}
	exact := f
	exact.exact = "exact"
	return &batch{dialog: d, files: exact, ctx: ctx, token: token}, nil
}

// Close implements [core.Batch].
func (b *batch) Close() error {
	b.end()
	<-b.ran
	return nil
}

// ask sends a request.
func (b *batch) ask(call string, paths []string) error {
	var line strings.Builder
	line.WriteString(newline + call)
	for _, p := range paths {
		if strings.ContainsRune(p, 0) {
			return pathError("open", p, fs.ErrInvalid)
		}
		line.WriteString(" " + quote(p))
	}
	_, err := io.WriteString(b.in, line.String()+"\n")
	return err
}

// failed returns the reason for an error of the dialog, which it ends.
func (b *batch) failed(err error) error {
	b.in.Close()
	_, _ = io.Copy(io.Discard, b.out)
	<-b.ran
	return b.why(b.ctx, err)
}

// ReadDirs implements [core.Batch].
func (b *batch) ReadDirs(paths []string) ([]core.BatchResult, error) {
	var results []core.BatchResult
	for some := range slices.Chunk(paths, chunk) {
		if err := b.ask("dirs", some); err != nil {
			return nil, b.failed(err)
		}
		for _, p := range some {
			result, err := b.readDir(p)
			if err != nil {
				return nil, b.failed(err)
			}
			results = append(results, result)
		}
	}
	return results, nil
}

// readDir reads the answer for one directory.
func (b *batch) readDir(name string) (core.BatchResult, error) {
	var list []byte
	for {
		kind, err := b.from.ReadByte()
		if err != nil {
			return core.BatchResult{}, err
		}
		switch kind {
		case '\n':
			entries, err := parseList(list)
			sortEntries(entries)
			return core.BatchResult{Entries: entries}, err
		case 'E':
			reason, err := b.from.ReadString('\n')
			return core.BatchResult{Err: pathError("readdir", name, failure(strings.TrimSpace(reason)))}, err
		}
		for ends := 0; ends < 2; { // the empty name, and the end of the lines of stat
			part, err := b.from.ReadBytes(0)
			if err != nil {
				return core.BatchResult{}, err
			}
			if len(part) == 1 || ends > 0 {
				ends++
			}
			list = append(list, part...)
		}
	}
}

// ReadFiles implements [core.Batch].
func (b *batch) ReadFiles(paths []string, limit int, visit func(i int, data []byte, err error)) error {
	for start := 0; start < len(paths); start += chunk {
		some := paths[start:min(start+chunk, len(paths))]
		if err := b.ask("files "+strconv.Itoa(limit), some); err != nil {
			return b.failed(err)
		}
		there, err := b.statuses(some, func(i int, err error) { visit(start+i, nil, err) })
		if err == nil {
			err = b.contents(some, there, limit, func(i int, data []byte, err error) { visit(start+i, data, err) })
		}
		if err != nil {
			return b.failed(err)
		}
	}
	return nil
}

// statuses reads which files can be read and returns their indexes.
func (b *batch) statuses(paths []string, refused func(i int, err error)) (there []int, err error) {
	for i, p := range paths {
		line, err := b.from.ReadString('\n')
		if err != nil {
			return nil, err
		}
		if line == "+\n" {
			there = append(there, i)
			continue
		}
		refused(i, pathError("open", p, failure(strings.TrimSpace(line[1:]))))
	}
	return there, nil
}

// contents reads what head printed. A file that changed since its size was
// determined shifts the next header: it and all after it are read one by one.
func (b *batch) contents(paths []string, there []int, limit int, visit func(i int, data []byte, err error)) error {
	text, err := b.from.ReadString(0)
	if err != nil {
		return err
	}
	sizes := strings.Fields(strings.TrimSuffix(text, "\x00"))
	end := "\x00" + b.token + "\n"
	done := 0
	if len(sizes) == len(there) {
		var data []byte
		for next := 0; next <= len(there); next++ {
			want := end
			if next < len(there) {
				want = header(next, paths[there[next]])
			}
			// The header shows that the content before it is complete.
			if got, err := b.from.Peek(len(want)); err != nil && len(got) == 0 {
				return err
			} else if string(got) != want {
				break
			}
			if next > 0 {
				visit(there[next-1], data, nil)
				done = next
			}
			_, _ = b.from.Discard(len(want)) // was peeked
			if next == len(there) {
				return nil
			}
			if data, err = b.take(sizes[next], limit); err != nil {
				return err
			}
		}
	}
	if err := b.skip(end); err != nil {
		return err
	}
	for _, i := range there[done:] {
		data, err := b.readOne(paths[i], limit)
		visit(i, data, err)
	}
	return b.ctx.Err()
}

// header is what head prints before a file.
func header(n int, name string) string {
	text := "==> " + name + " <==\n"
	if n > 0 {
		text = "\n" + text
	}
	return text
}

// take reads the content of a file of the given size.
func (b *batch) take(size string, limit int) ([]byte, error) {
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid size %q from stat: %w", size, err)
	}
	data := make([]byte, min(n, int64(limit)))
	_, err = io.ReadFull(b.from, data)
	return data, err
}

// skip reads up to the end of an answer.
func (b *batch) skip(end string) error {
	for {
		line, err := b.from.ReadString('\n')
		if err != nil || strings.HasSuffix(line, end) {
			return err
		}
	}
}

// readOne reads a file by itself.
func (b *batch) readOne(name string, limit int) ([]byte, error) {
	f, err := b.files.Open(b.ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)))
}
