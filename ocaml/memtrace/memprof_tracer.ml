module Memprof = Statmem.Memprof

type t =
  { writer : Trace.Writer.t
  ; report_exn : exn -> unit
  ; mutable profile : Memprof.profile option
  ; mutable ended : bool
  }

let active : t option ref = ref None
let active_tracer () = match !active with Some t when not t.ended -> Some t | _ -> None
let current_domain () = Trace.Domain_id.Expert.of_int (Statmem.current_domain ())

let stop t =
  if not t.ended
  then (
    t.ended <- true;
    (try Memprof.stop () with Failure _ -> ());
    Option.iter Memprof.discard t.profile;
    try Trace.Writer.close t.writer with
    | Trace.Writer.Pid_changed -> ())

let start ?(report_exn = raise) ~sampling_rate writer =
  let t = { writer; report_exn; profile = None; ended = false } in
  let guarded otherwise f =
    if t.ended
    then otherwise
    else (
      try f (Trace.Writer.for_domain t.writer ~domain:(current_domain ())) with
      | e ->
        t.ended <- true;
        (match e with
         | Trace.Writer.Pid_changed -> ()
         | e -> t.report_exn e);
        otherwise)
  in
  let now = Trace.Timestamp.now in
  let alloc source (info : Gc.Memprof.allocation) =
    guarded None (fun w ->
      Some
        (Trace.Writer.put_alloc_with_raw_backtrace
           w
           (now ())
           ~length:info.size
           ~nsamples:info.n_samples
           ~source
           ~callstack:info.callstack))
  in
  let collect id = guarded () (fun w -> Trace.Writer.put_collect w (now ()) id) in
  t.profile
    <- Some
         (Memprof.start
            ~sampling_rate
            ~callstack_size:max_int
            { alloc_minor = alloc Minor
            ; alloc_major = alloc Major
            ; promote =
                (fun id ->
                  guarded None (fun w ->
                    Trace.Writer.put_promote w (now ()) id;
                    Some id))
            ; dealloc_minor = collect
            ; dealloc_major = collect
            });
  active := Some t;
  t

type ext_token = Statmem.External.token

let ext_alloc = Statmem.External.alloc
let ext_free = Statmem.External.free
