package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/seed-009c0928/agent/core/proc"
	"github.com/seed-009c0928/agent/core/proc/sandbox"
	"github.com/seed-009c0928/agent/sdk/toolproto"
)

// Time limits.
const (
	describeTime   = 5 * time.Second        // to answer on the socket
	shutdownTime   = 500 * time.Millisecond // to answer the shutdown request
	endTime        = time.Second            // to exit after that
	noShutdownTime = 100 * time.Millisecond // to exit if the request is not supported
	killGrace      = 300 * time.Millisecond // from SIGTERM to SIGKILL
	probeTime      = 2 * time.Second        // to answer a probe
)

// instance is a running process of a plugin.
type instance struct {
	child   *child
	conn    *grpc.ClientConn
	client  toolproto.PluginClient
	stdin   *os.File         // write end of the plugin's stdin: the plugin exits when it closes
	dir     *sandbox.TempDir // of the socket
	kill    context.CancelCauseFunc
	alive   context.Context // done when the process has ended
	stdio   sync.WaitGroup  // readers of the plugin's output
	stopped chan struct{}   // closed when the cleanup is done
	once    sync.Once

	desc     *toolproto.Description // returned right after its start
	refs     int                    // calls; this and the next are guarded by the plugin's mutex
	retired  bool                   // no new calls
	lastUsed time.Time
}

// launchSpec describes how to start a process.
type launchSpec struct {
	supervisor *proc.Supervisor
	command    proc.Spec // completed by launch
	timeout    time.Duration
	log        *logFile
	version    string // of the host
}

// launch starts a plugin's process and gets its description. On an error,
// nothing is left of it.
func launch(ctx context.Context, s launchSpec) (_ *instance, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	i := &instance{stopped: make(chan struct{})}
	var lives context.Context
	lives, i.kill = context.WithCancelCause(context.Background())
	alive, ended := context.WithCancel(context.Background())
	i.alive = alive
	defer func() {
		if err != nil {
			i.stop(0)
			ended()
		}
	}()
	if i.dir, err = socketDir(); err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer theirs.Close()
	i.stdin = ours
	s.command.Stdin, s.command.Grace = theirs, killGrace
	cfg := &plugin.ClientConfig{
		HandshakeConfig:  plugin.HandshakeConfig{MagicCookieKey: toolproto.CookieKey, MagicCookieValue: toolproto.CookieValue},
		VersionedPlugins: map[int]plugin.PluginSet{toolproto.Version: {}},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		// No AutoMTLS: a socket in a directory that only the user can access needs
		// no certificates, which cost 25 ms per start.
		SkipHostEnv:      true,
		StartTimeout:     s.timeout + time.Minute, // our timeout comes first
		Logger:           hclog.NewNullLogger(),
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: i.dir.Path},
		RunnerFunc: func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
			s.command.Env = append(s.command.Env, cmd.Env...)
			if s.command.Sandbox != nil {
				s.command.Sandbox.Writable = append(s.command.Sandbox.Writable, i.dir.Path)
			}
			i.child = newChild(lives, s.supervisor, s.command, i.dir.Path, s.log)
			return i.child, nil
		},
	}
	if err := i.handshake(ctx, cfg, s.timeout); err != nil {
		return nil, i.explain(err, s.log)
	}
	go func() { // ends with the process; stop waits for that
		<-i.child.exited
		ended()
	}()
	if err := i.connect(s.log); err != nil {
		return nil, err
	}
	if i.desc, err = i.describe(ctx, s.version); err != nil {
		return nil, i.explain(err, s.log)
	}
	return i, nil
}

// handshake starts the process and waits for its first line.
func (i *instance) handshake(ctx context.Context, cfg *plugin.ClientConfig, timeout time.Duration) error {
	started := make(chan error, 1)
	go func() { // ends with the process or go-plugin's timeout
		_, err := plugin.NewClient(cfg).Start()
		started <- err
	}()
	select {
	case err := <-started:
		if ctx.Err() == nil {
			return err
		}
	case <-ctx.Done():
		i.kill(ctx.Err())
		<-started
	}
	if i.child != nil && i.child.problem() != nil {
		return i.child.problem()
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &startFault{fmt.Sprintf("it printed no handshake line within %s", timeout)}
	}
	return ctx.Err()
}

// startFault is a start error that needs no further explanation.
type startFault struct{ what string }

func (e *startFault) Error() string { return e.what }

// connect creates the connection, which is established by the first call.
func (i *instance) connect(log *logFile) error {
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", i.child.address)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableServiceConfig(), grpc.WithDisableRetry(),
		grpc.WithStaticStreamWindowSize(toolproto.Window), grpc.WithStaticConnWindowSize(toolproto.Window),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(toolproto.MaxMessage), grpc.MaxCallSendMsgSize(toolproto.MaxMessage)))
	if err != nil {
		return err
	}
	i.conn, i.client = conn, toolproto.NewPluginClient(conn)
	i.stdio.Go(func() { i.readOutput(log) })
	return nil
}

// readOutput logs the output captured by go-plugin's server until the connection
// ends. A plugin without that service prints to its own stdout and stderr.
func (i *instance) readOutput(log io.Writer) {
	stream, err := i.conn.NewStream(i.alive, &grpc.StreamDesc{ServerStreams: true}, "/plugin.GRPCStdio/StreamStdio")
	if err != nil {
		return
	}
	if stream.SendMsg(&emptypb.Empty{}) != nil || stream.CloseSend() != nil {
		return
	}
	for {
		data := &toolproto.Stdio{}
		if stream.RecvMsg(data) != nil {
			return
		}
		_, _ = log.Write(data.Data)
	}
}

// describe gets the plugin's description.
func (i *instance) describe(ctx context.Context, version string) (*toolproto.Description, error) {
	bounded, cancel := context.WithTimeout(ctx, describeTime)
	defer cancel()
	d, err := i.client.Describe(bounded, describeRequest(version))
	if err != nil && bounded.Err() != nil && ctx.Err() == nil {
		return nil, &startFault{fmt.Sprintf("it did not answer on its socket within %s", describeTime)}
	}
	if status.Code(err) == codes.FailedPrecondition { // it needs a newer host
		return nil, &startFault{cleanLine(status.Convert(err).Message())}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot get its description: %w", err)
	}
	return d, nil
}

// describeRequest tells a plugin what this host can do.
func describeRequest(version string) *toolproto.DescribeRequest {
	return &toolproto.DescribeRequest{HostVersion: version, Features: features}
}

var features = []string{toolproto.FeatureHooks, toolproto.FeatureSettings, toolproto.FeatureQuestions, toolproto.FeatureModel}

// probe reports whether the plugin responds.
func (i *instance) probe(version string) bool {
	ctx, cancel := context.WithTimeout(i.alive, probeTime)
	defer cancel()
	_, err := i.client.Describe(ctx, describeRequest(version))
	return err == nil
}

// explain returns a better error for a failed start.
func (i *instance) explain(err error, log *logFile) error {
	if fault := (*startFault)(nil); i.child == nil || errors.As(err, &fault) {
		return err
	}
	if fault := i.child.problem(); fault != nil {
		return fault
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("its program is missing: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("its program is not executable: %w; run chmod +x", err)
	case errors.Is(err, syscall.ENOEXEC), errors.Is(err, exec.ErrDot):
		return fmt.Errorf("its program is not for %s/%s, or a script without a #! line: %w", runtime.GOOS, runtime.GOARCH, err)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("its program is not in PATH: %w", err)
	}
	if i.child.process != nil && i.ended(300*time.Millisecond) {
		last := log.lastOutput()
		return fmt.Errorf("it exited before it was ready (%s)%s%s", describeExit(i.child.exit), last, i.child.limit(last))
	}
	return err
}

// ended reports whether the process has ended or ends within d.
func (i *instance) ended(d time.Duration) bool {
	select {
	case <-i.child.exited:
		return true
	default:
	}
	if d <= 0 {
		return false
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-i.child.exited:
		return true
	case <-t.C:
		return false
	}
}

// stop stops the process and cleans up. It first asks it to exit and waits for
// the given time, then kills it. Concurrent calls wait for the first one.
func (i *instance) stop(patience time.Duration) {
	i.once.Do(func() {
		defer close(i.stopped)
		if patience > 0 && i.conn != nil && i.alive.Err() == nil {
			ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
			err := i.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{})
			cancel()
			if status.Code(err) == codes.Unimplemented { // it may still exit when its stdin is closed
				patience = min(patience, noShutdownTime)
			}
		}
		if i.stdin != nil {
			_ = i.stdin.Close()
		}
		if i.child != nil && i.child.process != nil {
			if patience > 0 {
				i.ended(patience)
			}
			i.kill(nil)
			<-i.child.exited
		}
		i.kill(nil)
		if i.conn != nil {
			_ = i.conn.Close()
			i.stdio.Wait()
		}
		if i.dir != nil {
			_ = i.dir.Remove()
		}
	})
	<-i.stopped
}

// maxSocketDir bounds the path of a socket's directory: the system allows 104
// bytes in total, and go-plugin adds a directory and a file.
const maxSocketDir = 60

// socketDir creates a directory that only this user can access.
func socketDir() (*sandbox.TempDir, error) {
	for _, base := range sandbox.TempBases() {
		base, err := filepath.EvalSymlinks(base)
		if err != nil || len(base) > maxSocketDir-len("/agent-tmp-0123456789") {
			continue
		}
		if dir, err := sandbox.NewTempDirIn(base); err == nil {
			return dir, nil
		}
	}
	return nil, fmt.Errorf("no directory for a socket: %s is too long or not writable", strings.Join([]string{os.TempDir(), "/tmp"}, ", "))
}
