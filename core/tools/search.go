package tools

import (
	"context"
	"errors"
	"io/fs"
	"runtime"
	"sync"

	"github.com/seed-009c0928/agent/core"
)

const (
	maxGrepFile      = 4 << 20  // size of a file found by the walk
	maxGrepNamedFile = 64 << 20 // size of a file named by the model
	maxGrepReaders   = 8        // files read in parallel
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
		// More than there are processors would only need more memory.
		readers := max(2, min(runtime.GOMAXPROCS(0), maxGrepReaders))
		s.open(4 * readers)
		for range readers {
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
	reader := newFileSearcher(s.query, maxGrepFile)
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
	reader := newFileSearcher(q, maxGrepNamedFile)
	file, err := reader.search(ctx, env.Files(), q.base)
	if err != nil {
		return grepTally{}, err
	}
	if file.matches > 0 {
		yield(file)
	}
	return grepTally{searched: 1}, nil
}
