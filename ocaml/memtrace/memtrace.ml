module Trace = Trace
module Memprof_tracer = Memprof_tracer
module Geometric_sampler = Geometric_sampler

type tracer = Statmem.t

let default_sampling_rate = 1e-6
let active_tracer = Statmem.current
let currently_tracing () = Option.is_some (active_tracer ())
let stop_tracing = Statmem.stop

let start ~context ~sampling_rate ~rate_origin ~filename =
  try Statmem.start ?context ~sampling_rate ~rate_origin ~filename () with
  | Statmem.Cannot_start why -> failwith ("Memtrace: " ^ why)

let start_tracing ~context ~sampling_rate ~filename =
  start ~context ~sampling_rate ~rate_origin:`Argument ~filename

(* MEMTRACE_RATE wins over the argument. *)
let choose_rate argument =
  match Sys.getenv_opt "MEMTRACE_RATE", argument with
  | Some text, _ ->
    (match float_of_string_opt text with
     | Some rate when rate > 0. && rate <= 1. -> rate, `Environment
     | _ -> invalid_arg ("MEMTRACE_RATE must be a number in (0, 1], not '" ^ text ^ "'"))
  | None, Some rate -> rate, `Argument
  | None, None -> default_sampling_rate, `Default

let trace_if_requested ?(if_started = `Ignore) ?context ?sampling_rate () =
  match Sys.getenv_opt "MEMTRACE" with
  | None | Some "" -> ()
  | Some filename ->
    (match if_started with
     | `Ignore when currently_tracing () -> ()
     | `Fail | `Ignore ->
       let sampling_rate, rate_origin = choose_rate sampling_rate in
       (* Children are not traced. *)
       Statmem.unsetenv "MEMTRACE";
       (match start ~context ~sampling_rate ~rate_origin ~filename with
        | (_ : tracer) -> ()
        | exception Failure why ->
          if Sys.getenv_opt "STATMEM_RAISE" = Some "1" || if_started = `Fail
          then failwith why
          else prerr_endline (why ^ " (the program goes on without)")))

module External = Statmem.External
