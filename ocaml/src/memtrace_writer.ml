type t

external c_create
  :  Unix.file_descr
  -> float * int * string * string * string * int64 * int * int64 * string option
  -> t
  = "statmem_ml_writer_create"

external knows_location : t -> int -> bool = "statmem_ml_writer_knows" [@@noalloc]
external c_add : t -> int -> Reader.location array -> unit = "statmem_ml_writer_add"

external c_alloc : t -> int * int * int * int * int -> int64 -> int array -> int
  = "statmem_ml_writer_alloc"

external c_ref : t -> bool -> int -> int64 -> int -> unit = "statmem_ml_writer_ref"
external c_flush : t -> bool -> unit = "statmem_ml_writer_flush"

let create
  fd
  ~sample_rate
  ~word_size
  ~executable
  ~host
  ~runtime_params
  ~pid
  ~initial_domain
  ~start_us
  ~context
  =
  c_create
    fd
    ( sample_rate
    , word_size
    , executable
    , host
    , runtime_params
    , pid
    , initial_domain
    , start_us
    , context )

let add_location t code list = c_add t code (Array.of_list list)

let heap_number : Reader.heap -> int = function
  | Minor -> 0
  | Major -> 1
  | External -> 2

let put_alloc t ~domain time ~length ~samples ~heap codes n =
  if n < 0 || n > Array.length codes then invalid_arg "Memtrace_writer.put_alloc";
  c_alloc t (domain, length, samples, heap_number heap, n) time codes

let put_promote t ~domain time id = c_ref t true domain time id
let put_collect t ~domain time id = c_ref t false domain time id
let flush t = c_flush t false
let close t = c_flush t true
