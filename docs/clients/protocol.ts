// The host protocol of agent exec, version 1: what agent reads and writes.
// Generated from host-protocol.schema.json and events.schema.json; do not edit.

/** A line for agent. */
export type Command = {
  /** input, continue, answer, cancel, set, compact, rewind, end, detach or close; on lines also hello, now and open. */
  type: "hello" | "now" | "open" | "input" | "continue" | "answer" | "cancel" | "set" | "compact" | "rewind" | "end" | "detach" | "close";
  /** of an open: more directories of the workspace, absolute. */
  additionalDirectories?: Array<string>;
  /** of an open that attaches: seq of the last event that the host has; default the last one before the session was opened. */
  after?: number;
  /** of an answer with once to a permission request: an object that replaces the arguments of the call. */
  args?: unknown;
  /** of an answer: one of the question's choices; of a form yes or no. */
  choice?: string;
  /** of an input. */
  content?: Array<{
    /** text or image. */
    type: string;
    /** of an image, in base64. */
    data?: string;
    /** of an image, such as image/png. */
    mediaType?: string;
    text?: string;
  }>;
  /** of an input: what the host adds to it, such as open files; the model is told that these are not the user's words. */
  context?: Array<{
    /** where it comes from, such as a file or a URL. */
    source: string;
    text: string;
  }>;
  /** of an open: the working directory, absolute. */
  dir?: string;
  /** of a compact: what the summary must cover. */
  focus?: string;
  /** the line is answered by a reply with this id. */
  id?: string;
  /** of a rewind: seq of the user event. */
  input?: number;
  /** of an open: MCP servers for this session, besides those of the settings. */
  mcpServers?: Array<{
    /** stdio, http or sse; default stdio with a command, http with a url. */
    type?: string;
    args?: Array<string>;
    command?: string;
    env?: Record<string, string>;
    headers?: Record<string, string>;
    name: string;
    url?: string;
  }>;
  /** of an answer with session or always: index of the question's offer. */
  offer?: number;
  /** of a hello: the version that the host speaks. */
  protocol?: number;
  /** of an answer: the qid of the question. */
  question?: string;
  /** of a cancel: model to let running tools finish, tools (the default) to end them. */
  reach?: "" | "model" | "tools";
  /** of an answer or a cancel, in the user's words. */
  reason?: string;
  /** of an input, continue, compact, and an answer that continues a session: a name for its events; empty for a new one. */
  run?: string;
  /** of an open: the session to resume, or to attach to if another connection has it open; empty for a new one. */
  session?: string;
  /** of a set: its id. */
  setting?: string;
  /** of a set. */
  value?: string;
  /** of an answer to a form: an object. */
  values?: unknown;
  /** of an input while another is processed: empty to refuse it, next to process it afterwards, steer to add it to the other; keep to add it to what is processed now or next. */
  when?: "" | "next" | "steer" | "keep";
  /** of an end, and of an input to a subagent that is working: its id in now. */
  work?: string;
};

/** The answer to a line. */
export type Reply = {
  type: "reply";
  error?: {
    code: string;
    message: string;
  };
  id?: string;
  now?: {
    commands?: Array<string>;
    questions?: Array<{
      accesses?: Array<{
        argv?: Array<string>;
        recursive?: boolean;
        resource: string;
        scope: string;
        unconfined?: boolean;
      }>;
      agentPath?: Array<string>;
      choices?: Array<string>;
      detail?: string;
      edits?: Array<{
        kind: string;
        line?: number;
        new: string;
        old: string;
        path: string;
      }>;
      kind: string;
      offers?: Array<{
        confirm?: string;
        rules: Array<string>;
      }>;
      qid: string;
      schema?: unknown;
      title: string;
      tool?: string;
      url?: string;
    }>;
    queued?: Array<string>;
    run?: string;
    settings?: Array<{
      category?: string;
      id: string;
      name: string;
      value: string;
      values?: Array<string>;
    }>;
    state: string;
    work?: Array<{
      began: string;
      id: string;
      kind: string;
      running: boolean;
      state: string;
      title: string;
      tokens?: number;
    }>;
  };
  protocol?: number;
  run?: string;
};

/** What happens in the session. Later versions may add types and members. */
export type Event = {
  call?: string;
  id: string;
  iteration?: number;
  parent?: string;
  required?: boolean;
  seq: number;
  session: string;
  span?: string;
  time: string;
  tokens?: number;
  trace?: string;
  v: number;
} & (
  | {
    type: "session_start";
    agent?: string;
    cwd: string;
    model?: string;
    path?: Array<string>;
    profile?: string;
    provider?: string;
    resumed?: boolean;
  }
  | {
    type: "session_end";
    durationMs?: number;
    reason: string;
    usage: {
      cacheWrite?: number;
      cachedInput?: number;
      input: number;
      output: number;
      reasoning?: number;
    };
  }
  | {
    type: "prompt";
    model: string;
    profile?: string;
    provider: string;
    text: string;
  }
  | {
    type: "user";
    content: Array<{
      type: string;
    }>;
    input?: string;
    run?: string;
  }
  | {
    type: "idle";
    state: string;
    stop: string;
  }
  | {
    type: "message_start";
    model?: string;
  }
  | {
    type: "message_delta";
    text: string;
  }
  | {
    type: "reasoning_delta";
    text: string;
  }
  | {
    type: "message";
    content: Array<{
      type: string;
    }>;
    model?: string;
    partial?: boolean;
    provider?: string;
    responseId?: string;
    stop: string;
    usage: {
      cacheWrite?: number;
      cachedInput?: number;
      input: number;
      output: number;
      reasoning?: number;
    };
  }
  | {
    type: "tool_use";
    args: string;
    name: string;
    source?: string;
  }
  | {
    type: "tool_output_delta";
    text: string;
  }
  | {
    type: "tool_progress";
    done: number;
    message?: string;
    total?: number;
  }
  | {
    type: "tool_result";
    bytes?: number;
    code?: string;
    content: Array<{
      type: string;
    }>;
    durationMs: number;
    isError?: boolean;
    meta?: Record<string, unknown>;
    name: string;
    output?: {
      bytes: number;
      handle?: string;
      path?: string;
      text?: string;
    };
    structured?: unknown;
    waitedMs?: number;
  }
  | {
    type: "steering";
    content: Array<{
      type: string;
    }>;
    queued?: number;
    source: string;
  }
  | {
    type: "queued";
    content: Array<{
      type: string;
    }>;
    run?: string;
    source: string;
  }
  | {
    type: "turn_limit";
    limit: string;
    max: number;
  }
  | {
    type: "token_limit";
    limit: string;
    max: number;
    used: number;
  }
  | {
    type: "loop_detection";
    message: string;
    pattern: number;
  }
  | {
    type: "llm_start";
    firstByteTimeoutMs?: number;
    idleTimeoutMs?: number;
    messages: number;
    model: string;
    provider: string;
    purpose?: string;
    server?: string;
    tools: number;
    totalTimeoutMs?: number;
  }
  | {
    type: "llm_end";
    code?: string;
    error?: string;
    firstMs: number;
    latencyMs: number;
    model: string;
    provider: string;
    stop?: string;
    usage: {
      cacheWrite?: number;
      cachedInput?: number;
      input: number;
      output: number;
      reasoning?: number;
    };
  }
  | {
    type: "llm_retry";
    attempt: number;
    code: string;
    discard?: boolean;
    max: number;
    message: string;
    model?: string;
    provider?: string;
    waitMs: number;
  }
  | {
    type: "question";
    accesses?: Array<{
      argv?: Array<string>;
      recursive?: boolean;
      resource: string;
      scope: string;
      unconfined?: boolean;
    }>;
    agentPath?: Array<string>;
    choices?: Array<string>;
    detail?: string;
    edits?: Array<{
      kind: string;
      line?: number;
      new: string;
      old: string;
      path: string;
    }>;
    kind: string;
    offers?: Array<{
      confirm?: string;
      rules: Array<string>;
    }>;
    qid: string;
    schema?: unknown;
    title: string;
    tool?: string;
    url?: string;
  }
  | {
    type: "answer";
    args?: string;
    choice?: string;
    qid: string;
    reason?: string;
    rules?: Array<string>;
    values?: unknown;
    withdrawn?: boolean;
  }
  | {
    type: "permission";
    accesses?: Array<{
      argv?: Array<string>;
      recursive?: boolean;
      resource: string;
      scope: string;
      unconfined?: boolean;
    }>;
    choice?: string;
    decider: string;
    decision: string;
    reason?: string;
    rule?: string;
    rules?: Array<string>;
    source?: string;
    tool: string;
  }
  | {
    type: "skill_activated";
    by: string;
    file?: string;
    name: string;
    scope: string;
    size: number;
    trigger?: string;
  }
  | {
    type: "skills_listed";
    left?: number;
    names: Array<string>;
  }
  | {
    type: "compacted";
    after: number;
    before: number;
    content: Array<{
      type: string;
    }>;
    kept: number;
    model?: string;
    provider?: string;
    summarised: number;
    usage: {
      cacheWrite?: number;
      cachedInput?: number;
      input: number;
      output: number;
      reasoning?: number;
    };
  }
  | {
    type: "rewound";
    input: number;
  }
  | {
    type: "source_started";
    durationMs: number;
    error?: string;
    kind: string;
    name: string;
  }
  | {
    type: "subagent_start";
    child: string;
    input: string;
    inputId?: string;
    kind?: string;
    model?: string;
    name: string;
    path: Array<string>;
  }
  | {
    type: "subagent_end";
    child: string;
    costUsd?: number;
    durationMs: number;
    error?: string;
    name: string;
    outcome: string;
    text: string;
    usage: {
      cacheWrite?: number;
      cachedInput?: number;
      input: number;
      output: number;
      reasoning?: number;
    };
  }
  | {
    type: "files_changed";
    after: string;
    agent?: Array<string>;
    before: string;
    files: Array<{
      added?: number;
      binary?: boolean;
      diff?: string;
      dir?: boolean;
      from?: string;
      kind: string;
      mode?: string;
      path: string;
      removed?: number;
      symbols?: Array<{
        change: string;
        kind: string;
        name: string;
      }>;
    }>;
    left?: number;
    root: string;
    source?: string;
    undoes?: Array<number>;
    unrecorded?: Array<{
      path: string;
      reason: string;
    }>;
  }
  | {
    type: "hook";
    callId?: string;
    changed?: boolean;
    context?: string;
    decision?: string;
    durationMs: number;
    error?: string;
    event: string;
    exitCode?: number;
    kind: string;
    name: string;
    reason?: string;
    source: string;
    tool?: string;
    variables?: Array<string>;
  }
  | {
    type: "cancelled";
    abort?: boolean;
    reason: string;
  }
  | {
    type: "warning";
    code: string;
    message: string;
  }
  | {
    type: "error";
    code: string;
    message: string;
    retryAfterMs?: number;
    retryable: boolean;
  }
  | {
    type: "init";
    agent: string;
    cwd: string;
    log?: string;
    model: string;
    permissionMode: string;
    profile?: string;
    protocol?: number;
    provider: string;
    scripted?: boolean;
    tools: Array<string>;
  }
  | {
    type: "result";
    costUsd?: number;
    denied: Array<{
      accesses?: Array<{
        argv?: Array<string>;
        recursive?: boolean;
        resource: string;
        scope: string;
        unconfined?: boolean;
      }>;
      choice?: string;
      decider: string;
      decision: string;
      reason?: string;
      rule?: string;
      rules?: Array<string>;
      source?: string;
      tool: string;
    }>;
    durationMs: number;
    error?: {
      code: string;
      message: string;
      retryAfterMs?: number;
      retryable: boolean;
    };
    exitCode: number;
    outcome: string;
    questions?: Array<{
      accesses?: Array<{
        argv?: Array<string>;
        recursive?: boolean;
        resource: string;
        scope: string;
        unconfined?: boolean;
      }>;
      agentPath?: Array<string>;
      choices?: Array<string>;
      detail?: string;
      edits?: Array<{
        kind: string;
        line?: number;
        new: string;
        old: string;
        path: string;
      }>;
      kind: string;
      offers?: Array<{
        confirm?: string;
        rules: Array<string>;
      }>;
      qid: string;
      schema?: unknown;
      title: string;
      tool?: string;
      url?: string;
    }>;
    rounds: number;
    run?: string;
    text: string;
    usage: {
      cacheWrite?: number;
      cachedInput?: number;
      input: number;
      output: number;
      reasoning?: number;
    };
  }
  | {
    type: "setting_changed";
    setting: string;
    value: string;
  }
  | {
    type: "task_start";
    base: string;
    criteria: Array<{
      command?: string;
      kind: string;
      name: string;
      path?: string;
      text?: string;
    }>;
    description: string;
    maxBeads: number;
    onTestChange: string;
    rollback?: boolean;
    roundsPerBead: number;
    sealed?: Record<string, string>;
    steps?: Array<{
      criteria?: Array<{
        command?: string;
        kind: string;
        name: string;
        path?: string;
        text?: string;
      }>;
      files?: Array<string>;
      issue?: string;
      name: string;
      needs?: Array<string>;
      title: string;
    }>;
    task: string;
    tokenBudget?: number;
    workspace: string;
    worktrees?: number;
  }
  | {
    type: "task_state";
    bead?: number;
    before?: string;
    reason?: string;
    result?: {
      costUsd?: number;
      errors?: Array<string>;
      filesChanged: Array<{
        added?: number;
        binary?: boolean;
        diff?: string;
        dir?: boolean;
        from?: string;
        kind: string;
        mode?: string;
        path: string;
        removed?: number;
        symbols?: Array<{
          change: string;
          kind: string;
          name: string;
        }>;
      }>;
      isDone: boolean;
      left?: number;
      response: string;
      rounds: number;
      spent?: boolean;
      success: boolean;
      tokensUsed: number;
    };
    snapshot?: string;
    state: string;
    task: string;
  }
  | {
    type: "bead_start";
    allowance?: number;
    bead: number;
    before: string;
    child: string;
    finishing?: boolean;
    maxBeads: number;
    step?: string;
    task: string;
    worktree?: string;
  }
  | {
    type: "bead_end";
    after: string;
    bead: number;
    complete?: boolean;
    conflicts?: Array<string>;
    durationMs: number;
    failures?: Array<string>;
    fingerprint?: string;
    reason?: string;
    result: {
      costUsd?: number;
      errors?: Array<string>;
      filesChanged: Array<{
        added?: number;
        binary?: boolean;
        diff?: string;
        dir?: boolean;
        from?: string;
        kind: string;
        mode?: string;
        path: string;
        removed?: number;
        symbols?: Array<{
          change: string;
          kind: string;
          name: string;
        }>;
      }>;
      isDone: boolean;
      left?: number;
      response: string;
      rounds: number;
      spent?: boolean;
      success: boolean;
      tokensUsed: number;
    };
    rolledBack?: boolean;
    state: string;
    task: string;
  }
  | {
    type: "criterion";
    bead: number;
    command?: string;
    durationMs: number;
    exitCode: number;
    kind: string;
    name: string;
    output?: string;
    status: string;
    task: string;
  }
  | {
    type: "guard";
    action: string;
    bead: number;
    detail?: string;
    kind: string;
    path: string;
    task: string;
  }
  | {
    type: "budget";
    bead: number;
    costUsd?: number;
    max?: number;
    task: string;
    used: number;
    warning?: number;
  }
  | {
    type: "host";
    data?: unknown;
    name: string;
  }
);

/** A line of agent. */
export type Line = Event | Reply;
