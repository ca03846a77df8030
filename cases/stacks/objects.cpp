// C++: exceptions through several frames, with work in destructors on their way, virtual calls, callables of the library.
#include "shadow.h"
#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

OWN void truth_leaf()
{
	ACTIVE("truth_leaf");
	TOUCH();
}

struct Cleans {
	OWN ~Cleans()
	{
		truth_cleans();
	}
	OWN void truth_cleans()
	{
		ACTIVE("truth_cleans");
		TOUCH();
		truth_leaf();
	}
};

OWN void truth_throws(int kind)
{
	ACTIVE("truth_throws");
	TOUCH();
	if (kind)
		throw std::runtime_error(std::string(100, 'x'));
	throw 7;
}

OWN void truth_through(int depth, int kind)
{
	ACTIVE("truth_through");
	Cleans cleans;
	if (depth)
		truth_through(depth - 1, kind);
	else
		truth_throws(kind);
	TOUCH();
}

OWN void truth_rethrows(int kind)
{
	ACTIVE("truth_rethrows");
	try {
		truth_through(3, kind);
	} catch (const std::exception &) {
		TOUCH();
		truth_leaf();
		throw;
	}
}

OWN void truth_catches(int kind)
{
	ACTIVE("truth_catches");
	try {
		truth_rethrows(kind);
	} catch (const std::exception &error) {
		TOUCH();
		// Another one while this one is handled.
		try {
			truth_through(1, 0);
		} catch (int) {
			TOUCH();
		}
		truth_leaf();
	} catch (int) {
		TOUCH();
		truth_leaf();
	}
	TOUCH();
}

struct Shape {
	virtual ~Shape() = default;
	virtual int truth_area(int depth) = 0;
};

struct Named {
	virtual ~Named() = default;
	virtual int truth_name(int depth) = 0;
	long place[3];
};

struct Circle : Shape, Named {
	OWN int truth_area(int depth) override
	{
		ACTIVE("truth_area");
		TOUCH();
		return depth ? static_cast<Named *>(this)->truth_name(depth - 1) : 1;
	}
	// Called through a thunk that corrects `this`.
	OWN int truth_name(int depth) override
	{
		ACTIVE("truth_name");
		TOUCH();
		return depth ? static_cast<Shape *>(this)->truth_area(depth - 1) + 1 : 1;
	}
};

template <typename T> OWN T truth_generic(T value, const std::function<T(T)> &function)
{
	ACTIVE("truth_generic");
	TOUCH();
	T result = function(value);
	TOUCH();
	return result;
}

OWN long truth_callables(long base)
{
	ACTIVE("truth_callables");
	std::function<long(long)> function = [base](long value) __attribute__((noinline)) {
		ACTIVE("truth_callables{closure}");
		TOUCH();
		truth_leaf();
		return value + base;
	};
	std::function<double(double)> other = [&](double value) __attribute__((noinline)) {
		ACTIVE("truth_callables{closure}");
		TOUCH();
		return value + (double)function((long)value);
	};
	return truth_generic<long>(base, function) + (long)truth_generic<double>(1.5, other);
}

OWN bool truth_less(const std::string &one, const std::string &two)
{
	ACTIVE("truth_less");
	TOUCH();
	return one < two;
}

OWN void truth_sorts()
{
	ACTIVE("truth_sorts");
	std::vector<std::string> words{"delta", "alpha", "charlie", "echo", "bravo"};
	std::sort(words.begin(), words.end(), truth_less);
	TOUCH();
}

OWN void truth_thread()
{
	ACTIVE("truth_thread");
	truth_catches(1);
	TOUCH();
}

OWN void truth_main()
{
	ACTIVE("truth_main");
	Circle circle;
	Shape *volatile shape = &circle;
	for (int i = 0; i < 25; i++) {
		truth_catches(i % 2);
		shape->truth_area(6);
		truth_callables(i);
		truth_sorts();
	}
	std::thread one(truth_thread), two(truth_thread);
	truth_catches(1);
	one.join();
	two.join();
}

int main(int, char **arguments)
{
	shadow_begin(arguments[1], 0);
	truth_main();
	shadow_end();
}
