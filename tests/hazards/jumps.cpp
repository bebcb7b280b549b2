// 9: exceptions and longjmp through the functions that allocate; every operator new and delete.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

static jmp_buf place;
static unsigned long handlers;

static void handler() {
    handlers++;
    if (handlers % 2 == 0)
        longjmp(place, 1); // out of operator new
    throw std::bad_alloc();
}

struct alignas(128) Wide {
    char bytes[300];
};

static volatile std::size_t too_much = ~std::size_t(0) / 4;

int main(int argc, char **argv) {
    unsigned long caught = 0, jumped = 0, sum = 0;
    std::set_new_handler(handler);
    // mimalloc's operator new ends the program when there is no memory: not with an argument
    for (int i = 0; i < (argc > 1 ? 0 : 200); i++) {
        if (setjmp(place) != 0) {
            jumped++;
            continue;
        }
        try {
            char *p = static_cast<char *>(::operator new(too_much));
            sum += *p;
        } catch (const std::bad_alloc &) {
            caught++;
        }
    }
    std::set_new_handler(nullptr);
    for (int i = 0; i < 1000; i++) {
        std::vector<std::string> v;
        for (int k = 0; k < 20; k++)
            v.push_back(std::string(static_cast<std::size_t>(k * 10), 'x'));
        sum += v.size() + v.back().size();
        Wide *w = new Wide, *ws = new Wide[3];
        sum += reinterpret_cast<std::size_t>(w) % 128 + reinterpret_cast<std::size_t>(ws) % 128;
        delete w;
        delete[] ws;
        int *n = new (std::nothrow) int(4), *ns = new (std::nothrow) int[10];
        sum += static_cast<unsigned long>(*n);
        operator delete(n, std::nothrow);
        operator delete[](ns, std::nothrow);
        ::operator delete(::operator new(100), std::size_t(100));
        ::operator delete(::operator new(100, std::align_val_t(64)), std::size_t(100),
                          std::align_val_t(64));
    }
    std::printf("%lu %lu %lu\n", caught, jumped, sum);
    return 0;
}
