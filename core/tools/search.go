package tools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"sync"

	"github.com/seed-009c0928/agent/core"
	"github.com/seed-009c0928/agent/core/internal/charset"
	"github.com/seed-009c0928/agent/core/internal/textedit"
)

const (
	maxGrepFile      = 4 << 20  // size of a file found by the walk
	maxGrepNamedFile = 64 << 20 // size of a file named by the model
	grepReaders      = 4        // files read in parallel
)

// nativeSearch is the grepEngine that needs only the environment's files. It
// skips what git ignores, symbolic links, binary files and large files.
func nativeSearch(ctx context.Context, env core.Environment, q *grepQuery, yield func(grepFile) bool) (grepTally, error) {
	if q.file {
		return searchNamedFile(ctx, env, q, yield)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &search{ctx: ctx, env: env, query: q, walker: walker{env: env, base: q.base}}
	if err := s.walker.openBatch(ctx); err != nil {
		return grepTally{}, err
	}
	defer s.walker.closeBatch()
	var wg sync.WaitGroup
	if s.walker.ahead.batch != nil {
		s.open(4 * maxBatchFiles)
		wg.Go(s.readBatches)
	} else {
		s.open(4 * grepReaders)
		for range grepReaders {
			wg.Go(s.read)
		}
	}
	wg.Go(s.produce)
	err := s.collect(yield)
	cancel()
	wg.Wait()
	if err == nil && !s.stopped {
		err = s.walkErr
	}
	s.tally.denied += s.walker.denied
	s.tally.failed += s.walker.failed
	return s.tally, err
}

// search is one search of a directory: a walk that queues jobs, readers that do
// them, and a collector that takes the results in the order of the queue.
type search struct {
	ctx     context.Context
	env     core.Environment
	query   *grepQuery
	queue   chan *searchJob
	work    chan *searchJob
	walker  walker
	walkErr error
	tally   grepTally
	stopped bool // by yield
}

// searchJob is files to search one after another. Several in a job save time
// where they are small.
type searchJob struct {
	files []searchedFile
	size  int64         // of the only file, for batches
	done  chan struct{} // closed when all have results
}

type searchedFile struct {
	grepFile
	err error
}

// finish sets the result of the only file.
func (j *searchJob) finish(file grepFile, err error) {
	file.rel = j.files[0].rel
	j.files[0] = searchedFile{file, err}
	close(j.done)
}

// open makes room for jobs.
func (s *search) open(jobs int) {
	s.queue, s.work = make(chan *searchJob, jobs), make(chan *searchJob, jobs)
}

// jobFiles returns how many files the next job has: few at first, as large trees
// have small files, and a few large files are for all readers.
func jobFiles(found int) int { return min(1+found/64, 16) }

func (s *search) produce() {
	defer close(s.queue)
	defer close(s.work)
	found := 0
	var next []searchedFile
	s.walkErr = s.walker.walk(s.ctx, func(e walkEntry) error {
		if !e.entry.Type().IsRegular() || !s.query.filter.selects(e.rel) {
			return nil
		}
		var size int64
		if s.walker.ahead.batch != nil {
			info, err := e.entry.Info()
			if err != nil {
				return nil // removed meanwhile
			}
			size = info.Size()
		}
		found++
		next = append(next, searchedFile{grepFile: grepFile{rel: e.rel}})
		if len(next) < jobFiles(found) && s.walker.ahead.batch == nil {
			return nil
		}
		files := next
		next = nil
		return s.give(&searchJob{files: files, size: size})
	})
	if len(next) > 0 && s.walkErr == nil {
		s.walkErr = s.give(&searchJob{files: next})
	}
}

// give queues a job.
func (s *search) give(job *searchJob) error {
	job.done = make(chan struct{})
	for _, c := range []chan *searchJob{s.queue, s.work} {
		select {
		case c <- job:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	return nil
}

func (s *search) read() {
	reader := &fileSearcher{query: s.query, lines: s.query.scanner(), most: maxGrepFile}
	files := s.env.Files()
	for job := range s.work {
		for i := range job.files {
			f := &job.files[i]
			rel := f.rel
			f.grepFile, f.err = reader.search(s.ctx, files, s.walker.at(rel))
			f.rel = rel
		}
		close(job.done)
	}
}

func (s *search) collect(yield func(grepFile) bool) error {
	for job := range s.queue {
		select {
		case <-job.done:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
		for _, f := range job.files {
			if errors.Is(f.err, errLostBatch) {
				return f.err
			}
			s.tally.count(f.err)
			if f.matches > 0 && !yield(f.grepFile) {
				s.stopped = true
				return nil
			}
		}
	}
	return s.ctx.Err()
}

// count counts a file by the outcome of its search.
func (t *grepTally) count(err error) {
	switch {
	case err == nil:
		t.searched++
	case errors.Is(err, errBinary), errors.Is(err, fs.ErrNotExist):
	case errors.Is(err, core.ErrTooLarge):
		t.large++
	case errors.Is(err, fs.ErrPermission):
		t.denied++
	default:
		t.failed++
	}
}

func searchNamedFile(ctx context.Context, env core.Environment, q *grepQuery, yield func(grepFile) bool) (grepTally, error) {
	reader := &fileSearcher{query: q, lines: q.scanner(), most: maxGrepNamedFile}
	file, err := reader.search(ctx, env.Files(), q.base)
	if err != nil {
		return grepTally{}, err
	}
	if file.matches > 0 {
		yield(file)
	}
	return grepTally{searched: 1}, nil
}

var errBinary = errors.New("binary file")

// fileSearcher searches files one after another, reusing a buffer.
type fileSearcher struct {
	query *grepQuery
	lines *lineScanner
	most  int // maximum size of a file
	buf   []byte
}

// scanner returns what finds the lines of the query.
func (q *grepQuery) scanner() *lineScanner {
	lines := q.matcher.scanner()
	lines.anywhere = q.mode != modeContent
	return lines
}

func (s *fileSearcher) search(ctx context.Context, files core.FS, name string) (grepFile, error) {
	if err := ctx.Err(); err != nil {
		return grepFile{}, err
	}
	text, err := s.load(ctx, files, name)
	if err != nil {
		return grepFile{}, err
	}
	return s.findIn(ctx, text)
}

// searchText searches a file's content, of which the end may be cut off.
func (s *fileSearcher) searchText(ctx context.Context, text []byte, cut bool) (grepFile, error) {
	if cut || len(text) > s.most {
		if head := text[:min(len(text), sniffLen)]; bytes.IndexByte(head, 0) >= 0 {
			if _, ok := charset.Detect(head); !ok {
				return grepFile{}, errBinary
			}
		}
		return grepFile{}, core.ErrTooLarge
	}
	return s.findIn(ctx, text)
}

// findIn searches the whole content of a file, in whatever encoding it is.
func (s *fileSearcher) findIn(ctx context.Context, text []byte) (grepFile, error) {
	if s.lines.absent(text) {
		return grepFile{}, ctx.Err()
	}
	var encoding charset.Encoding
	if !validUTF8(text) || bytes.IndexByte(text[:min(len(text), sniffLen)], 0) >= 0 {
		var ok bool
		if encoding, ok = charset.Detect(text); !ok {
			return grepFile{}, errBinary
		}
		text = encoding.Decode(text)
	}
	if bytes.IndexByte(text, '\r') >= 0 {
		text = bytes.ReplaceAll(text, []byte("\r\n"), []byte("\n"))
	}
	text = bytes.TrimPrefix(text, []byte(textedit.BOM))
	file := s.find(ctx, text)
	file.encoding = encoding
	return file, ctx.Err()
}

// load reads a text file into the buffer.
func (s *fileSearcher) load(ctx context.Context, files core.FS, name string) ([]byte, error) {
	f, err := files.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	size := int(min(info.Size(), int64(s.most)+1))
	if size > len(s.buf) || s.buf == nil {
		s.buf = make([]byte, max(size, 2*len(s.buf), 64<<10))
	}
	for n, sniffed := 0, false; ; {
		m, err := f.Read(s.buf[n:])
		n += m
		end := errors.Is(err, io.EOF) || n > 0 && n == size // size is 0 in /proc
		if !sniffed && (end || n >= sniffLen) {
			sniffed = true
			head := s.buf[:min(n, sniffLen)]
			if bytes.IndexByte(head, 0) >= 0 {
				if _, ok := charset.Detect(head); !ok {
					return nil, errBinary
				}
			}
		}
		switch {
		case n > s.most, sniffed && size > s.most:
			return nil, core.ErrTooLarge
		case end:
			return s.buf[:n], nil
		case err != nil:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case n == len(s.buf):
			s.buf = slices.Grow(s.buf, len(s.buf))
			s.buf = s.buf[:cap(s.buf)]
		}
	}
}

// find collects the matching lines of a text, as many as the query needs.
func (s *fileSearcher) find(ctx context.Context, text []byte) grepFile {
	var file grepFile
	lines := lineCollector{text: text, context: s.query.context, number: 1}
	for m := range s.lines.all(text) {
		file.matches++
		if s.query.mode == modeFiles {
			break
		}
		if s.query.mode == modeContent {
			lines.add(m)
			if file.matches > s.query.max { // one more, to know that there are more
				break
			}
		}
		if ctx.Err() != nil {
			break
		}
	}
	lines.finish()
	file.lines = lines.lines
	return file
}

// lineCollector turns matches into lines with numbers and context.
type lineCollector struct {
	text    []byte
	context int
	lines   []grepLine
	pos     int // start of the line after the last one taken
	number  int // of that line
	after   int // lines of context still needed after the last match
}

// add adds a match and the context before it.
func (c *lineCollector) add(m lineMatch) {
	c.takeAfter(m.start)
	start := m.start
	for n := 0; n < c.context && start > c.pos; n++ {
		start = bytes.LastIndexByte(c.text[:start-1], '\n') + 1
	}
	c.number += bytes.Count(c.text[c.pos:start], []byte{'\n'})
	c.pos = start
	for c.pos < m.start {
		c.take(c.lineEnd(), 0, false)
	}
	c.take(m.end, m.at-m.start, true)
	c.after = c.context
}

// finish adds the context after the last match.
func (c *lineCollector) finish() { c.takeAfter(len(c.text)) }

// takeAfter adds the context after the last match, up to limit.
func (c *lineCollector) takeAfter(limit int) {
	for ; c.after > 0 && c.pos < limit; c.after-- {
		c.take(c.lineEnd(), 0, false)
	}
}

func (c *lineCollector) lineEnd() int {
	if n := bytes.IndexByte(c.text[c.pos:], '\n'); n >= 0 {
		return c.pos + n
	}
	return len(c.text)
}

// take adds the line from pos to end, clipped around at.
func (c *lineCollector) take(end, at int, match bool) {
	c.lines = append(c.lines, grepLine{number: c.number, text: clip(string(c.text[c.pos:end]), at, grepLineChars), match: match})
	c.pos = min(end+1, len(c.text))
	c.number++
}
