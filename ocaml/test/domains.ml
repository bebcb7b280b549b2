(* Several domains: OCaml 5.3 and later. *)

module R = Statmem.Reader

let passed = ref 0
let failed = ref 0

let test name f =
  match f () with
  | () -> incr passed
  | exception e ->
    incr failed;
    Printf.printf "FAIL %s: %s\n%s%!" name (Printexc.to_string e) (Printexc.get_backtrace ())

let check what ok = if not ok then failwith what
let () = Printexc.record_backtrace true

let folder =
  let f = Filename.temp_file "statmem" "" in
  Sys.remove f;
  Unix.mkdir f 0o700;
  f

let file name = Filename.concat folder name

let read_all path each =
  let r = R.open_ ~filename:path in
  R.iter r each;
  let losses = R.losses r in
  R.close r;
  losses

(* [n] lists of [length] elements, of which none survives. *)
let allocate n length =
  for _ = 1 to n do
    ignore (Sys.opaque_identity (List.init length (fun i -> i + 1)))
  done

let own_id () = (Domain.self () :> int)

let () =
  test "every domain is present, at rate 1 with all its words" (fun () ->
    (* Measured in the domain itself, recording or not: callbacks of ours allocate nothing, but the runtime's records
       of samples do, so the truth comes from a run that is not recorded. *)
    let share k = allocate (200 * k) 100 in
    let truth = Array.make 5 0. in
    for k = 1 to 4 do
      Domain.join
        (Domain.spawn (fun () ->
           let before = Gc.minor_words () in
           share k;
           truth.(k) <- Gc.minor_words () -. before))
    done;
    let path = file "rate1.stm" in
    let t = Statmem.start ~sampling_rate:1. ~filename:path () in
    let ids = Array.make 5 0 in
    let domains =
      List.init 4 (fun i ->
        Domain.spawn (fun () ->
          ids.(i + 1) <- own_id ();
          share (i + 1)))
    in
    List.iter Domain.join domains;
    Statmem.stop t;
    let words = Hashtbl.create 8 in
    let losses =
      read_all path (fun _ e ->
        match e with
        | Alloc { domain; samples; heap = Minor; _ } ->
          let n = Option.value (Hashtbl.find_opt words domain) ~default:0 in
          Hashtbl.replace words domain (n + samples)
        | _ -> ())
    in
    check "nothing lost" (losses = []);
    for k = 1 to 4 do
      let got = Option.value (Hashtbl.find_opt words ids.(k)) ~default:0 in
      let want = int_of_float truth.(k) in
      check (Printf.sprintf "domain %d: %d of %d words" ids.(k) got want) (abs (got - want) <= 200)
    done);
  test "External from several domains and threads" (fun () ->
    let path = file "external.stm" in
    let t = Statmem.start ~sampling_rate:0.01 ~filename:path () in
    let body () =
      for _ = 1 to 5000 do
        match Statmem.External.alloc ~bytes:800 with
        | None -> ()
        | Some token -> Statmem.External.free token
      done
    in
    let domains =
      List.init 4 (fun _ ->
        Domain.spawn (fun () ->
          let thread = Thread.create body () in
          body ();
          Thread.join thread))
    in
    List.iter Domain.join domains;
    Statmem.stop t;
    let samples = ref 0 and live = ref 0 in
    let losses =
      read_all path (fun _ e ->
        match e with
        | Alloc { heap = External; samples = n; _ } ->
          samples := !samples + n;
          incr live
        | Collect _ -> decr live
        | _ -> ())
    in
    check "nothing lost" (losses = []);
    (* 8 * 5000 * 100 words at 0.01: 40 000 samples, sigma 199 *)
    check (string_of_int !samples) (abs (!samples - 40_000) < 1_300));
  test "start and stop in a loop while others allocate" (fun () ->
    let go_on = Atomic.make true in
    let path = file "loop.stm" in
    let t = Statmem.start ~sampling_rate:0.1 ~filename:path () in
    let others =
      List.init 3 (fun _ ->
        Domain.spawn (fun () ->
          while Atomic.get go_on do
            allocate 10 50
          done))
    in
    Statmem.stop t;
    for _ = 1 to 100 do
      let t = Statmem.start ~sampling_rate:0.1 ~filename:path () in
      allocate 5 50;
      Statmem.stop t
    done;
    (* Stopped by a domain that does not take part. *)
    let t = Statmem.start ~sampling_rate:0.1 ~filename:path () in
    Domain.join (Domain.spawn (fun () -> Statmem.stop t));
    check "stopped" (not (Statmem.active t));
    let t = Statmem.start ~sampling_rate:0.1 ~filename:path () in
    allocate 1000 50;
    Atomic.set go_on false;
    List.iter Domain.join others;
    Statmem.stop t;
    let samples = ref 0 in
    ignore
      (read_all path (fun _ e ->
         match e with
         | Alloc a -> samples := !samples + a.samples
         | _ -> ()));
    check "samples" (!samples > 1000));
  test "Domain.DLS in the program" (fun () ->
    let path = file "dls.stm" in
    let t = Statmem.start ~sampling_rate:0.5 ~filename:path () in
    for _ = 1 to 20 do
      let key = Domain.DLS.new_key (fun () -> List.init 10 Fun.id) in
      let domains =
        List.init 3 (fun i ->
          Domain.spawn (fun () ->
            Domain.DLS.set key (List.init (10 + i) Fun.id);
            allocate 20 20;
            List.length (Domain.DLS.get key)))
      in
      List.iteri (fun i d -> check "DLS" (Domain.join d = 10 + i)) domains
    done;
    Statmem.stop t;
    check "nothing lost" (read_all path (fun _ _ -> ()) = []));
  test "an object freed by another domain" (fun () ->
    let path = file "foreign.stm" in
    let t = Statmem.start ~sampling_rate:0.2 ~filename:path () in
    let tokens =
      Domain.join
        (Domain.spawn (fun () ->
           List.filter_map (fun _ -> Statmem.External.alloc ~bytes:400) (List.init 1000 Fun.id)))
    in
    List.iter Statmem.External.free tokens;
    Statmem.stop t;
    let allocated = Hashtbl.create 64 and freed = ref 0 in
    let losses =
      read_all path (fun _ e ->
        match e with
        | Alloc { obj; domain; heap = External; _ } -> Hashtbl.replace allocated obj domain
        | Collect { obj; domain } ->
          (match Hashtbl.find_opt allocated obj with
           | Some by ->
             check "by another domain" (by <> domain);
             incr freed
           | None -> ())
        | _ -> ())
    in
    check "nothing lost" (losses = []);
    check "all freed" (!freed = List.length tokens && !freed > 900))

let () =
  ignore (Sys.command ("rm -rf " ^ Filename.quote folder));
  Printf.printf "%d passed, %d failed\n" !passed !failed;
  if !failed > 0 then exit 1
