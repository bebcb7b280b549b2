module R = Statmem.Reader
module W = Statmem.Memtrace_writer

module Timestamp = struct
  type t = int64

  let of_int64 t = t
  let to_int64 t = t
  let of_float s = Int64.of_float (s *. 1e6)
  let to_float t = Int64.to_float t /. 1e6
  let now () = of_float (Unix.gettimeofday ())
end

module Timedelta = struct
  type t = int64

  let to_int64 t = t
  let offset = Int64.add
end

module Location = struct
  type t =
    { filename : string
    ; line : int
    ; start_char : int
    ; end_char : int
    ; defname : string
    }

  let to_string { filename; line; start_char; end_char; defname } =
    Printf.sprintf "%s@%s:%d:%d-%d" defname filename line start_char end_char

  let unknown =
    { filename = "<unknown>"; line = 1; start_char = 1; end_char = 1; defname = "??" }

  let of_reader (l : R.location) =
    { filename = l.file
    ; line = l.line
    ; start_char = l.start_char
    ; end_char = l.end_char
    ; defname = l.func
    }

  let to_reader l : R.location =
    { file = l.filename
    ; line = l.line
    ; start_char = l.start_char
    ; end_char = l.end_char
    ; func = l.defname
    }
end

module Int_key = struct
  [@@@warning "-32"] (* one of the two is used, by version *)

  type t = int

  let equal = Int.equal
  let hash = Hashtbl.seeded_hash
  let seeded_hash = Hashtbl.seeded_hash
end

module Int_tbl = Hashtbl.MakeSeeded (Int_key)

module Obj_id = struct
  type t = int

  module Tbl = Int_tbl
end

module Domain_id = struct
  type t = int

  let main_domain = 0

  module Expert = struct
    let of_int t = t
  end
end

module Location_code = struct
  type t = int

  module Tbl = Int_tbl

  module Expert = struct
    let of_int t = t
  end
end

module Allocation_source = struct
  type t =
    | Minor
    | Major
    | External

  let to_string = function
    | Minor -> "minor"
    | Major -> "major"
    | External -> "external"

  let of_heap : R.heap -> t = function
    | Minor -> Minor
    | Major -> Major
    | External -> External

  let to_heap : t -> R.heap = function
    | Minor -> Minor
    | Major -> Major
    | External -> External
end

module Event = struct
  type t =
    | Alloc of
        { obj_id : Obj_id.t
        ; length : int
        ; domain : Domain_id.t
        ; nsamples : int
        ; source : Allocation_source.t
        ; backtrace_buffer : Location_code.t array
        ; backtrace_length : int
        ; common_prefix : int
        }
    | Promote of Obj_id.t * Domain_id.t
    | Collect of Obj_id.t * Domain_id.t

  let domain = function
    | Alloc { domain; _ } | Promote (_, domain) | Collect (_, domain) -> domain

  let to_string decode = function
    | Alloc a ->
      let frames = Array.to_list (Array.sub a.backtrace_buffer 0 a.backtrace_length) in
      let names = List.map Location.to_string (List.concat_map decode frames) in
      Printf.sprintf
        "%010d alloc %d words, %d samples, %s, domain %d: %s"
        a.obj_id
        a.length
        a.nsamples
        (Allocation_source.to_string a.source)
        a.domain
        (String.concat " " names)
    | Promote (id, domain) -> Printf.sprintf "%010d promote, domain %d" id domain
    | Collect (id, domain) -> Printf.sprintf "%010d collect, domain %d" id domain
end

module Info = struct
  type t =
    { sample_rate : float
    ; word_size : int
    ; executable_name : string
    ; host_name : string
    ; ocaml_runtime_params : string
    ; pid : Int64.t
    ; initial_domain : Domain_id.t
    ; start_time : Timestamp.t
    ; context : string option
    }
end

module Writer = struct
  type t =
    { out : W.t
    ; domain : int
    ; getpid : unit -> int64
    ; pid : int64
    }

  exception Pid_changed

  let own_pid () = Int64.of_int (Unix.getpid ())

  let create fd ?(getpid = own_pid) (info : Info.t) =
    let out =
      W.create
        fd
        ~sample_rate:info.sample_rate
        ~word_size:info.word_size
        ~executable:info.executable_name
        ~host:info.host_name
        ~runtime_params:info.ocaml_runtime_params
        ~pid:info.pid
        ~initial_domain:info.initial_domain
        ~start_us:info.start_time
        ~context:info.context
    in
    { out; domain = info.initial_domain; getpid; pid = info.pid }

  let domain t = t.domain
  let for_domain t ~domain = { t with domain }
  let check_pid t = if not (Int64.equal (t.getpid ()) t.pid) then raise Pid_changed

  let put t now ~length ~nsamples ~source codes n decode =
    check_pid t;
    for i = 0 to n - 1 do
      let code = codes.(i) in
      if not (W.knows_location t.out code)
      then W.add_location t.out code (List.map Location.to_reader (decode code))
    done;
    W.put_alloc
      t.out
      ~domain:t.domain
      now
      ~length
      ~samples:nsamples
      ~heap:(Allocation_source.to_heap source)
      codes
      n

  let put_alloc t now ~length ~nsamples ~source ~callstack ~decode_callstack_entry =
    let n = Array.length callstack in
    put t now ~length ~nsamples ~source callstack n decode_callstack_entry

  (* The runtime's slots, innermost first; as integers they are unique codes. *)
  let decode_slot slot =
    let rec inlined slot acc =
      let acc =
        let converted = Printexc.convert_raw_backtrace_slot slot in
        match Printexc.Slot.location converted with
        | None -> acc
        | Some l ->
          let name = Option.value (Printexc.Slot.name converted) ~default:"??" in
          { Location.filename = l.filename
          ; line = l.line_number
          ; start_char = l.start_char
          ; end_char = l.end_char
          ; defname = name
          }
          :: acc
      in
      match Printexc.get_raw_backtrace_next_slot slot with
      | None -> acc
      | Some next -> inlined next acc
    in
    inlined slot []

  let put_alloc_with_suffix_of_raw_backtrace
    t
    now
    ~length
    ~nsamples
    ~source
    ~callstack
    ~drop_slots
    =
    let total = Printexc.raw_backtrace_length callstack in
    let n = max 0 (total - drop_slots) in
    let slots = Hashtbl.create 16 in
    let codes =
      Array.init n (fun i ->
        let slot = Printexc.get_raw_backtrace_slot callstack (total - 1 - i) in
        let code : int = Obj.magic slot in
        if not (Hashtbl.mem slots code) then Hashtbl.add slots code slot;
        code)
    in
    put t now ~length ~nsamples ~source codes n (fun code -> decode_slot (Hashtbl.find slots code))

  let put_alloc_with_raw_backtrace t now ~length ~nsamples ~source ~callstack =
    put_alloc_with_suffix_of_raw_backtrace
      t
      now
      ~length
      ~nsamples
      ~source
      ~callstack
      ~drop_slots:0

  let put_collect t now id =
    check_pid t;
    W.put_collect t.out ~domain:t.domain now id

  let put_promote t now id =
    check_pid t;
    W.put_promote t.out ~domain:t.domain now id

  let flush t =
    check_pid t;
    W.flush t.out

  let close t =
    check_pid t;
    W.close t.out

  (* Ids in the events are another trace's. *)
  let put_translated t ids ~decode_callstack_entry now (event : Event.t) =
    let with_id id f = Option.iter f (Hashtbl.find_opt ids id) in
    match event with
    | Alloc a ->
      let t = for_domain t ~domain:a.domain in
      let id =
        put
          t
          now
          ~length:a.length
          ~nsamples:a.nsamples
          ~source:a.source
          a.backtrace_buffer
          a.backtrace_length
          decode_callstack_entry
      in
      Hashtbl.replace ids a.obj_id id
    | Promote (id, domain) ->
      with_id id (fun id -> put_promote (for_domain t ~domain) now id)
    | Collect (id, domain) ->
      with_id id (fun new_id ->
        Hashtbl.remove ids id;
        put_collect (for_domain t ~domain) now new_id)

  module Multiplexed_domains = struct
    type nonrec t =
      { writer : t
      ; ids : (int, int) Hashtbl.t
      }

    let create fd ?getpid info = { writer = create fd ?getpid info; ids = Hashtbl.create 1024 }

    let put_event t ~decode_callstack_entry now event =
      put_translated t.writer t.ids ~decode_callstack_entry now event

    let flush t = flush t.writer
  end

  let put_event t ~decode_callstack_entry now (event : Event.t) =
    match event with
    | Alloc a ->
      let id =
        put
          t
          now
          ~length:a.length
          ~nsamples:a.nsamples
          ~source:a.source
          a.backtrace_buffer
          a.backtrace_length
          decode_callstack_entry
      in
      if id <> a.obj_id
      then failwith "Trace.Writer.put_event: events must come in the order of their object ids"
    | Promote (id, _) -> put_promote t now id
    | Collect (id, _) -> put_collect t now id
end

module Reader = struct
  type t = R.t

  let open_ ~filename = R.open_ ~filename

  (* The C reader opens by name; this one is the descriptor's own. *)
  let create fd = R.open_ ~filename:(Printf.sprintf "/proc/self/fd/%d" (Obj.magic fd : int))

  let info t : Info.t =
    let i = R.info t in
    { sample_rate = i.sample_rate
    ; word_size = i.word_size
    ; executable_name = i.executable
    ; host_name = i.host
    ; ocaml_runtime_params = i.runtime_params
    ; pid = i.pid
    ; initial_domain = i.initial_domain
    ; start_time = i.start_us
    ; context = i.context
    }

  let lookup_location_code t code = List.map Location.of_reader (R.location t code)

  let iter t ?(parse_backtraces = true) f =
    R.iter ~stacks:parse_backtraces t (fun time event ->
      let event : Event.t =
        match event with
        | R.Alloc a ->
          Alloc
            { obj_id = a.obj
            ; length = a.words
            ; domain = a.domain
            ; nsamples = a.samples
            ; source = Allocation_source.of_heap a.heap
            ; backtrace_buffer = a.stack
            ; backtrace_length = a.depth
            ; common_prefix = a.common_prefix
            }
        | R.Promote { obj; domain } -> Promote (obj, domain)
        | R.Collect { obj; domain } -> Collect (obj, domain)
      in
      f (Int64.of_int time) event)

  let size_bytes = R.size_bytes
  let close = R.close
  let losses = R.losses
end
