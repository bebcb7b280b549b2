(* What the library promises, on every version of OCaml. Each test is a name and a function that raises when
   something is wrong. *)

module R = Statmem.Reader

let passed = ref 0
let failed = ref 0
let skipped = ref 0

exception Skip

let test name f =
  match f () with
  | () -> incr passed
  | exception Skip -> incr skipped
  | exception e ->
    incr failed;
    Printf.printf "FAIL %s: %s\n%s%!" name (Printexc.to_string e) (Printexc.get_backtrace ())

let check what ok = if not ok then failwith what

let equal what got want =
  if got <> want then failwith (Printf.sprintf "%s: got %d, want %d" what got want)

let folder =
  let f = Filename.temp_file "statmem" "" in
  Sys.remove f;
  Unix.mkdir f 0o700;
  f

let file name = Filename.concat folder name

let read path =
  let ic = open_in_bin path in
  let s = really_input_string ic (in_channel_length ic) in
  close_in ic;
  s

type totals =
  { mutable allocs : int
  ; mutable samples : int
  ; mutable words : int
  ; mutable promotes : int
  ; mutable collects : int
  ; mutable external_ : int
  ; mutable frames : int
  ; mutable deepest : int
  ; mutable last_us : int
  ; mutable domains : (int * int) list
  }

let totals ?(each = fun _ _ -> ()) reader =
  let t =
    { allocs = 0
    ; samples = 0
    ; words = 0
    ; promotes = 0
    ; collects = 0
    ; external_ = 0
    ; frames = 0
    ; deepest = 0
    ; last_us = 0
    ; domains = []
    }
  in
  R.iter reader (fun time event ->
    check "times ascend" (time >= t.last_us);
    t.last_us <- time;
    each time event;
    match event with
    | Alloc a ->
      t.allocs <- t.allocs + 1;
      t.samples <- t.samples + a.samples;
      t.words <- t.words + a.words;
      t.frames <- t.frames + a.depth;
      t.deepest <- max t.deepest a.depth;
      if a.heap = External then t.external_ <- t.external_ + 1;
      let n = Option.value (List.assoc_opt a.domain t.domains) ~default:0 in
      t.domains <- (a.domain, n + 1) :: List.remove_assoc a.domain t.domains
    | Promote _ -> t.promotes <- t.promotes + 1
    | Collect _ -> t.collects <- t.collects + 1);
  t

let with_trace path f =
  let r = R.open_ ~filename:path in
  Fun.protect ~finally:(fun () -> R.close r) (fun () -> f r)

(* Not in tail position: its frame must stay. *)
let[@inline never] make_list n =
  Sys.opaque_identity (List.init n (fun i -> i, string_of_int i))
let keep = ref []

let work () =
  for i = 1 to 200 do
    let l = make_list 100 in
    if i mod 10 = 0 then keep := l :: !keep
  done

let record ?(rate = 0.01) name f =
  let path = file name in
  let t = Statmem.start ~sampling_rate:rate ~filename:path () in
  Fun.protect ~finally:(fun () -> Statmem.stop t) f;
  path

(* Runs the program written for memtrace with these variables set; its output, and exit status 0. *)
let run_program variables =
  let program = Filename.concat (Filename.dirname Sys.executable_name) "written_for_memtrace.exe" in
  let out = file "program.out" and err = file "program.err" in
  let command =
    String.concat " " (List.map (fun (n, v) -> n ^ "=" ^ Filename.quote v) variables)
    ^ Printf.sprintf " %s >%s 2>%s" (Filename.quote program) out err
  in
  let status = Sys.command ("env " ^ command) in
  status, String.trim (read out), String.trim (read err)

let () = Printexc.record_backtrace true

(* ---- memtrace's interface ---- *)

let () =
  test "a program written for memtrace, unchanged" (fun () ->
    let path = file "program.stm" in
    let status, out, err = run_program [ "MEMTRACE", path; "MEMTRACE_RATE", "0.001" ] in
    equal "exit status" status 0;
    check ("output: " ^ out) (out = "cleared");
    check ("nothing on stderr: " ^ err) (err = "");
    with_trace path (fun r ->
      let info = R.info r in
      check "rate of the variable" (info.sample_rate = 0.001);
      check "context" (info.context = Some "written for memtrace");
      check "no children" (R.losses r = []);
      (* 10 000 * 512 words external; strings of 3 to 9 words with header: about 1.2 M words. *)
      let t = totals r in
      check "external samples" (t.external_ > 3000);
      check "own frames are hidden"
        (let ok = ref true in
         R.iter r (fun _ e ->
           match e with
           | Alloc ({ heap = External; _ } as a) ->
             (match List.rev (R.location r a.stack.(a.depth - 1)) with
              | innermost :: _ -> if innermost.file <> "ocaml/test/written_for_memtrace.ml" then ok := false
              | [] -> ok := false)
           | _ -> ());
         !ok);
      check "all external freed" (t.collects >= t.external_)));
  test "MEMTRACE empty or absent is off" (fun () ->
    let status, out, err = run_program [ "MEMTRACE", "" ] in
    equal "exit status" status 0;
    check out (out = "still set");
    check err (err = ""));
  test "a file that cannot be opened does not end the program" (fun () ->
    let status, out, err = run_program [ "MEMTRACE", "/nonexistent/folder/t.stm" ] in
    equal "exit status" status 0;
    check out (out = "cleared");
    check ("one line: " ^ err) (err <> "" && not (String.contains err '\n')));
  test "STATMEM_RAISE brings the exception back" (fun () ->
    let status, _, err =
      run_program [ "MEMTRACE", "/nonexistent/folder/t.stm"; "STATMEM_RAISE", "1" ]
    in
    equal "exit status" status 2;
    check err (String.length err > 0));
  test "a wrong MEMTRACE_RATE is an invalid argument" (fun () ->
    List.iter
      (fun rate ->
        let status, _, err = run_program [ "MEMTRACE", file "x.stm"; "MEMTRACE_RATE", rate ] in
        equal ("exit status for " ^ rate) status 2;
        check err (String.length err > 0))
      [ "0"; "2"; "-1"; "nan"; "many" ]);
  test "rate: the variable wins over the argument" (fun () ->
    Unix.putenv "MEMTRACE" (file "rate.stm");
    Unix.putenv "MEMTRACE_RATE" "0.125";
    Memtrace.trace_if_requested ~sampling_rate:0.5 ();
    check "tracing" (Memtrace.currently_tracing ());
    Memtrace.trace_if_requested ~sampling_rate:0.25 (); (* ignored: MEMTRACE is gone *)
    Unix.putenv "MEMTRACE" (file "other.stm");
    Memtrace.trace_if_requested ();
    (match Memtrace.trace_if_requested ~if_started:`Fail () with
     | () -> failwith "`Fail did not fail"
     | exception Failure _ -> ());
    Option.iter Memtrace.stop_tracing (Memtrace.active_tracer ());
    check "stopped" (not (Memtrace.currently_tracing ()));
    Statmem.unsetenv "MEMTRACE";
    Statmem.unsetenv "MEMTRACE_RATE";
    check "no other file" (not (Sys.file_exists (file "other.stm")));
    with_trace (file "rate.stm") (fun r -> check "0.125" ((R.info r).sample_rate = 0.125)));
  test "rates outside (0, 1] are refused" (fun () ->
    List.iter
      (fun rate ->
        match Statmem.start ~sampling_rate:rate ~filename:(file "bad.stm") () with
        | (_ : Statmem.t) -> failwith (string_of_float rate)
        | exception Invalid_argument _ -> ())
      [ 0.; -0.1; 1.1; nan; infinity ])

(* ---- recording ---- *)

let () =
  test "at rate 1 every word is counted" (fun () ->
    (* Sampling on or off changes nothing in what the program allocates, so an unrecorded run tells the truth. *)
    let measure () =
      let before = Gc.minor_words () in
      work ();
      Gc.minor_words () -. before
    in
    ignore (measure ());
    let truth = int_of_float (measure ()) in
    let path = record ~rate:1. "rate1.stm" work in
    with_trace path (fun r ->
      let words = ref 0 in
      let t =
        totals r ~each:(fun _ e ->
          match e with
          | Alloc { heap = Minor; samples; _ } -> words := !words + samples
          | _ -> ())
      in
      check "samples are words with headers" (t.samples >= t.words + t.allocs);
      check
        (Printf.sprintf "%d words recorded, %d counted" !words truth)
        (abs (!words - truth) <= 64)));
  test "callbacks allocate nothing on the OCaml heap" (fun () ->
    (* The runtime's own share of a sample is its call stack and record; with a tracker that answers None it
       is the same. *)
    let[@inline never] measured () =
      let before = Gc.minor_words () in
      work ();
      Gc.minor_words () -. before
    in
    let[@inline never] cost tracker =
      let p = Statmem.Memprof.start ~sampling_rate:0.5 ~callstack_size:8192 tracker in
      let words = measured () in
      Statmem.Memprof.stop ();
      Statmem.Memprof.discard p;
      words
    in
    let[@inline never] cost_of_ours () =
      let t = Statmem.start ~sampling_rate:0.5 ~filename:(file "words.stm") () in
      let words = measured () in
      Statmem.stop t;
      words
    in
    let null =
      { Gc.Memprof.alloc_minor = (fun _ -> None)
      ; alloc_major = (fun _ -> None)
      ; promote = (fun () -> None)
      ; dealloc_minor = (fun () -> ())
      ; dealloc_major = (fun () -> ())
      }
    in
    ignore (cost null);
    let theirs = cost null in
    let ours = cost_of_ours () in
    check
      (Printf.sprintf "ours %.0f, null tracker %.0f words" ours theirs)
      (ours < 1.01 *. theirs && ours > 0.8 *. theirs));
  test "start, stop, start again; a late stop does nothing" (fun () ->
    let a = Statmem.start ~filename:(file "a.stm") () in
    (match Statmem.start ~filename:(file "b.stm") () with
     | (_ : Statmem.t) -> failwith "two recordings at once"
     | exception Statmem.Cannot_start _ -> ());
    check "the second file was not made" (not (Sys.file_exists (file "b.stm")));
    Statmem.stop a;
    let b = Statmem.start ~filename:(file "b.stm") () in
    Statmem.stop a;
    check "still active" (Statmem.active b);
    Statmem.stop b;
    check "over" (not (Statmem.active b));
    for i = 1 to 300 do
      let t = Statmem.start ~sampling_rate:0.1 ~filename:(file "loop.stm") () in
      if i mod 30 = 0 then work ();
      Statmem.stop t
    done;
    with_trace (file "loop.stm") (fun r -> check "samples" ((totals r).samples > 0)));
  test "stop, keep the data, collect: nothing is written after the close" (fun () ->
    let path = record ~rate:0.1 "closed.stm" work in
    let before = read path in
    Gc.full_major ();
    keep := [];
    Gc.full_major ();
    check "unchanged" (read path = before);
    check "no side file" (not (Sys.file_exists (path ^ ".tail"))));
  test "promotions and deaths" (fun () ->
    let path =
      record ~rate:0.1 "life.stm" (fun () ->
        work ();
        Gc.full_major ();
        keep := [];
        Gc.full_major ())
    in
    with_trace path (fun r ->
      let alive = Hashtbl.create 100 in
      let promoted = ref 0 in
      let t =
        totals r ~each:(fun _ e ->
          match e with
          | Alloc a -> Hashtbl.replace alive a.obj ()
          | Promote { obj; _ } ->
            check "promoted while alive" (Hashtbl.mem alive obj);
            incr promoted
          | Collect { obj; _ } ->
            check "dies once" (Hashtbl.mem alive obj);
            Hashtbl.remove alive obj)
      in
      check "some promoted" (!promoted > 20);
      check
        (Printf.sprintf "nearly all dead: %d of %d alive" (Hashtbl.length alive) t.allocs)
        (Hashtbl.length alive * 20 < t.allocs)));
  test "call stacks name this file, with the caller outside" (fun () ->
    let path = record ~rate:0.1 "stacks.stm" work in
    with_trace path (fun r ->
      let good = ref 0 and all = ref 0 in
      R.iter r (fun _ e ->
        match e with
        | Alloc a ->
          incr all;
          let names =
            List.concat_map (R.location r) (Array.to_list (Array.sub a.stack 0 a.depth))
          in
          let functions = List.map (fun (l : R.location) -> l.func) names in
          let ends_with suffix s =
            let n = String.length s and m = String.length suffix in
            n >= m && String.sub s (n - m) m = suffix
          in
          if List.exists (ends_with ".make_list") functions
          then (
            let rec after = function
              | [] -> []
              | f :: rest when ends_with ".work" f -> rest
              | _ :: rest -> after rest
            in
            if List.exists (ends_with ".make_list") (after functions) then incr good)
        | _ -> ());
      check (Printf.sprintf "%d of %d" !good !all) (!good * 10 > !all * 8)));
  test "a signal handler that raises" (fun () ->
    let stopped = ref 0 in
    let path =
      record ~rate:0.5 "signals.stm" (fun () ->
        Sys.set_signal Sys.sigalrm (Signal_handle (fun _ -> raise Exit));
        for _ = 1 to 20 do
          ignore (Unix.setitimer ITIMER_REAL { it_interval = 0.; it_value = 0.002 });
          try
            while true do
              ignore (Sys.opaque_identity (make_list 50))
            done
          with
          | Exit -> incr stopped
        done)
    in
    equal "interrupted" !stopped 20;
    with_trace path (fun r -> check "samples" ((totals r).samples > 1000)));
  test "threads: own events, External, names" (fun () ->
    let path =
      record ~rate:0.05 "threads.stm" (fun () ->
        let body i =
          Statmem.thread_name (Printf.sprintf "worker %d" i);
          for _ = 1 to 200 do
            (match Statmem.External.alloc ~bytes:800 with
             | None -> ()
             | Some token -> Statmem.External.free token);
            ignore (Sys.opaque_identity (make_list 20))
          done
        in
        List.iter Thread.join (List.init 8 (fun i -> Thread.create body i));
        Statmem.mark "threads are done")
    in
    with_trace path (fun r ->
      let t = totals r in
      (* 8 * 200 * 100 words at 0.05: 8000 samples in 1600 blocks, each sampled but for e^-5 of them *)
      check (string_of_int t.external_) (t.external_ > 1550 && t.external_ <= 1600)));
  test "fork: the child is silent, the parent's file sound" (fun () ->
    let path =
      record ~rate:0.1 "fork.stm" (fun () ->
        work ();
        match Unix.fork () with
        | 0 ->
          work ();
          Unix._exit 0
        | pid ->
          ignore (Unix.waitpid [] pid);
          work ())
    in
    with_trace path (fun r ->
      let t = totals r in
      check "samples" (t.samples > 100);
      check "nothing lost" (R.losses r = [])))

(* ---- the sampler ---- *)

let () =
  test "geometric gaps: mean and distribution" (fun () ->
    List.iter
      (fun rate ->
        let s =
          Memtrace.Geometric_sampler.make ~rand:(Random.State.make [| 7 |]) ~sampling_rate:rate ()
        in
        let n = 200_000 in
        let sum = ref 0. and ones = ref 0 in
        for _ = 1 to n do
          let k = Memtrace.Geometric_sampler.draw s in
          check "at least 1" (k >= 1);
          if k = 1 then incr ones;
          sum := !sum +. float k
        done;
        let mean = !sum /. float n in
        let sigma = sqrt (1. -. rate) /. rate /. sqrt (float n) in
        check
          (Printf.sprintf "mean %g at rate %g" mean rate)
          (Float.abs (mean -. (1. /. rate)) <= 6. *. sigma);
        let p = float !ones /. float n in
        check
          (Printf.sprintf "P(1) = %g at rate %g" p rate)
          (Float.abs (p -. rate) <= 6. *. sqrt (rate *. (1. -. rate) /. float n)))
      [ 1.; 0.5; 0.1; 0.001 ]);
  test "geometric gaps: reproducible and copied" (fun () ->
    let open Memtrace.Geometric_sampler in
    let a = make ~sampling_rate:0.01 () and b = make ~sampling_rate:0.01 () in
    ignore (draw a);
    ignore (draw b);
    let c = copy a in
    for _ = 1 to 100 do
      let x = draw a in
      equal "twin" (draw b) x;
      equal "copy" (draw c) x
    done)

(* ---- Trace: writing and reading ---- *)

let () =
  test "Trace.Writer, then Trace.Reader: the same events" (fun () ->
    let open Memtrace.Trace in
    let path = file "written.ctf" in
    let fd = Unix.openfile path [ O_RDWR; O_CREAT; O_TRUNC ] 0o600 in
    let start = Timestamp.of_int64 1_700_000_000_000_000L in
    let info : Info.t =
      { sample_rate = 0.01
      ; word_size = 64
      ; executable_name = "exe"
      ; host_name = "host"
      ; ocaml_runtime_params = "v=0"
      ; pid = Int64.of_int (Unix.getpid ())
      ; initial_domain = Domain_id.main_domain
      ; start_time = start
      ; context = Some "context"
      }
    in
    let decode (code : Location_code.t) =
      [ { Location.filename = "f.ml"
        ; line = (code :> int)
        ; start_char = 1
        ; end_char = 2
        ; defname = "f" ^ string_of_int (code :> int)
        }
      ]
    in
    let w = Writer.create fd info in
    let time i = Timestamp.of_int64 (Int64.add 1_700_000_000_000_000L (Int64.of_int i)) in
    let n = 30_000 in
    for i = 1 to n do
      let callstack =
        Array.init (1 + (i mod 40)) (fun k -> Location_code.Expert.of_int (1 + (k * (i mod 7))))
      in
      let id =
        Writer.put_alloc
          w
          (time i)
          ~length:(i mod 300)
          ~nsamples:(1 + (i mod 3))
          ~source:(if i mod 5 = 0 then Major else Minor)
          ~callstack
          ~decode_callstack_entry:decode
      in
      if i mod 2 = 0 then Writer.put_promote w (time i) id;
      if i mod 3 = 0 then Writer.put_collect w (time i) id
    done;
    Writer.close w;
    Unix.close fd;
    let r = Reader.open_ ~filename:path in
    let i = ref 0 and promotes = ref 0 and collects = ref 0 in
    check "info" (Reader.info r = info);
    Reader.iter r (fun dt event ->
      match event with
      | Alloc a ->
        incr i;
        let i = !i in
        check "time" (Timedelta.to_int64 dt = Int64.of_int i);
        equal "length" a.length (i mod 300);
        equal "samples" a.nsamples (1 + (i mod 3));
        equal "depth" a.backtrace_length (1 + (i mod 40));
        Array.iteri
          (fun k code ->
            if k < a.backtrace_length
            then (
              match Reader.lookup_location_code r code with
              | [ l ] -> equal "frame" l.line (1 + (k * (i mod 7)))
              | _ -> failwith "one location"))
          a.backtrace_buffer
      | Promote _ -> incr promotes
      | Collect _ -> incr collects);
    equal "allocations" !i n;
    equal "promotions" !promotes (n / 2);
    equal "collections" !collects (n / 3);
    (* Copied through the events, as memtrace's own tools do. *)
    let copy = file "copy.ctf" in
    let fd = Unix.openfile copy [ O_RDWR; O_CREAT; O_TRUNC ] 0o600 in
    let w = Writer.Multiplexed_domains.create fd info in
    Reader.iter r (fun dt e ->
      Writer.Multiplexed_domains.put_event
        w
        ~decode_callstack_entry:(Reader.lookup_location_code r)
        (Timedelta.offset start dt)
        e);
    Writer.Multiplexed_domains.flush w;
    Unix.close fd;
    Reader.close r;
    let figures path = with_trace path (fun r -> totals r) in
    check "copy" (figures copy = figures path));
  test "Memprof_tracer with a writer of one's own" (fun () ->
    let path = file "own.ctf" in
    let fd = Unix.openfile path [ O_RDWR; O_CREAT; O_TRUNC ] 0o600 in
    let info : Memtrace.Trace.Info.t =
      { sample_rate = 0.02
      ; word_size = 64
      ; executable_name = Sys.executable_name
      ; host_name = "host"
      ; ocaml_runtime_params = ""
      ; pid = Int64.of_int (Unix.getpid ())
      ; initial_domain = Memtrace.Trace.Domain_id.main_domain
      ; start_time = Memtrace.Trace.Timestamp.now ()
      ; context = None
      }
    in
    let w = Memtrace.Trace.Writer.create fd info in
    let t = Memtrace.Memprof_tracer.start ~sampling_rate:0.02 w in
    work ();
    Memtrace.Memprof_tracer.stop t;
    Unix.close fd;
    with_trace path (fun r ->
      let t = totals r in
      check "samples" (t.samples > 100);
      check "frames" (t.deepest > 1)));
  test "files of other programs" (fun () ->
    let corpus = Option.value (Sys.getenv_opt "STATMEM_CORPUS") ~default:"" in
    let corpus =
      if corpus <> "" then corpus else Filename.concat (Sys.getcwd ()) "../../../../../shared/corpus"
    in
    if not (Sys.file_exists corpus) then raise Skip;
    (* Figures of two files, from the corpus's own list. *)
    let expected = read (Filename.concat corpus "expected.json") in
    let figure name field =
      let find from text =
        let n = String.length text in
        let rec go i = if String.sub expected i n = text then i + n else go (i + 1) in
        go from
      in
      let at = find (find 0 ("\"" ^ name ^ "\": {")) ("\"" ^ field ^ "\": ") in
      Scanf.sscanf (String.sub expected at 20) "%d" Fun.id
    in
    List.iter
      (fun name ->
        with_trace (Filename.concat corpus name) (fun r ->
          let t = totals r in
          let same field got = equal (name ^ " " ^ field) got (figure name field) in
          same "nsamples" t.samples;
          same "promote" t.promotes;
          same "collect" t.collects;
          same "sum_len_words" t.words;
          same "sum_bt_len" t.frames;
          same "max_bt_len" t.deepest;
          same "alloc_ext" t.external_))
      [ "git-lists_and_sets-1f74dcf3.ctf"
      ; "o413-v1r13a4ab8-mix-d1-r1e-3.ctf"
      ; "o413-head-ext-d1-r1e-4.ctf"
      ; "o53-headperdomain-pfib-d2-r1e-3.ctf"
      ]);
  test "a file that is no trace" (fun () ->
    List.iter
      (fun path ->
        match R.open_ ~filename:path with
        | r ->
          R.close r;
          failwith ("opened " ^ path)
        | exception Failure why -> check why (String.length why > 10))
      [ "/nonexistent"; "/"; Sys.executable_name ])

let () =
  ignore (Sys.command ("rm -rf " ^ Filename.quote folder));
  Printf.printf
    "%d passed, %d failed%s\n"
    !passed
    !failed
    (if !skipped > 0 then Printf.sprintf ", %d skipped" !skipped else "");
  if !failed > 0 then exit 1
